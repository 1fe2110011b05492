"""The process: lines on standard input and output, and the runs."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from ._run import MAX_LINE, Line, Run
from ._schema import to_json
from .errors import DurableError, TooLarge

if TYPE_CHECKING:
    from ._app import Outlive

VERSION = "0.1.0"
MAX_THREADS = 256


class Worker:
    """The runs of one process. `read_fd` and `write_fd` are its pipes to the server."""

    time_factor = 1

    def __init__(self, app: Outlive, read_fd: int, write_fd: int) -> None:
        self.app, self.read_fd, self.write_fd = app, read_fd, write_fd
        self.nonce, self.dev, self.draining, self.unread = "", False, False, b""
        self.runs: dict[tuple[str, int], Run] = {}
        self.pieces: dict[tuple[str, int], dict[str, Any]] = {}
        self.lock, self.pool = threading.Lock(), ThreadPoolExecutor(MAX_THREADS, "outlive-step")
        self.loop: asyncio.AbstractEventLoop
        self.finished: asyncio.Event

    async def serve(self) -> None:
        """Serves calls until the process is drained."""
        self.loop, self.finished = asyncio.get_running_loop(), asyncio.Event()
        early: list[Line] = []
        while not early:
            early = self.read()
        self.nonce, self.dev = early[0]["welcome"]["nonce"], bool(early[0]["welcome"].get("dev"))
        async with AsyncExitStack() as stack:
            await self.app.open(stack)
            hello = {"protocol": 1, "sdk": f"outlive-python {VERSION}", "name": self.app.name, "tools": self.app.entries()}
            self.write({"hello": hello})
            self.app.worker = self
            self.receive(early[1:])
            threading.Thread(target=self.read_all, daemon=True).start()
            await self.finished.wait()

    # The reader's thread.

    def read(self) -> list[Line]:
        """Returns the next lines of the server. Ends the process at the end of input, whatever its threads do."""
        chunk = os.read(self.read_fd, 1 << 16) or os._exit(0)
        *lines, self.unread = (self.unread + chunk).split(b"\n")
        return [json.loads(line) for line in lines if line]

    def read_all(self) -> None:
        try:
            while True:
                self.receive(self.read())
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def receive(self, lines: list[Line]) -> None:
        """Handles lines of the server. Lines of async runs go to the event loop together."""
        batch: list[tuple[Run, Line]] = []
        for line in lines:
            name = "cleanup" if "cleanup" in line else "call"
            key = (name, line.get(name, 0))
            if "tool" in line:
                self.add(key, line)
            if run := self.runs.get(key):
                if run.handler.blocking:
                    run.receive(line)
                else:
                    batch.append((run, line))
            elif "more" in line:
                self.pieces.setdefault(key, {}).update(line["journal"])
            elif "ping" in line:
                self.write({"pong": line["ping"]})
            elif "drain" in line:
                self.draining = True
                self.loop.call_soon_threadsafe(self.check_finished)
            elif "goodbye" in line:
                self.log(line["goodbye"])
                os._exit(2)
            elif name not in line:
                self.log(f"unknown message: {to_json(line)[:200]}")
        if batch:
            self.loop.call_soon_threadsafe(self.deliver, batch)

    def deliver(self, batch: list[tuple[Run, Line]]) -> None:
        for run, line in batch:
            run.receive(line)

    def add(self, key: tuple[str, int], line: Line) -> None:
        tool = self.app.tools.get(line["tool"])
        handler = tool and (tool.handler if key[0] == "call" else tool.cleanup_handler)
        journal = {**self.pieces.pop(key, {}), **line.get("journal", {})}
        if handler:
            self.runs[key] = Run(self, handler, line, journal)
        else:
            self.write({key[0]: key[1], "error": f"unknown tool `{line['tool']}`", "kind": "ToolError"})

    # Any thread.

    def write(self, members: Line) -> None:
        """Writes a line. Raises `TooLarge` above the limit of a line."""
        data = to_json({"nonce": self.nonce, **members}).encode() + b"\n"
        if len(data) > MAX_LINE:
            raise TooLarge("", f"a line of {len(data)} bytes exceeds the limit of {MAX_LINE}; use emit, or return a link")
        with self.lock:
            try:
                while data:
                    data = data[os.write(self.write_fd, data):]
            except BrokenPipeError:
                os._exit(0)

    def ended(self, run: Run) -> None:
        for key in run.tag.items():
            self.runs.pop(key, None)
        if self.draining:
            self.loop.call_soon_threadsafe(self.check_finished)

    def check_finished(self) -> None:
        if self.draining and not self.runs:
            self.finished.set()

    def misuse(self, error: DurableError) -> DurableError:
        """Returns the error of an author's mistake. A test fails because of it, also if the handler catches it."""
        return error

    def log(self, text: str) -> None:
        print(f"outlive: {text}", file=sys.stderr, flush=True)


def serve_process(app: Outlive) -> None:
    """Serves calls on standard input and output, and ends the process. Other output goes to standard error."""
    read_fd, write_fd, code = os.dup(0), os.dup(1), 0
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    stdout: Any = sys.stdout
    stdout.reconfigure(line_buffering=True)  # A process that is killed has sent its lines.
    os.dup2(2, 1)
    try:
        asyncio.run(Worker(app, read_fd, write_fd).serve())
    except BaseException:
        traceback.print_exc()
        code = 2
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
