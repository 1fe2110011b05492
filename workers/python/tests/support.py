"""Processes of tool workers for tests."""

import os
import pathlib
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).parent.parent
PROTOCOL = ROOT.parent / "protocol"
TESTS = pathlib.Path(__file__).parent
os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{TESTS}"
sys.path[:0] = [str(PROTOCOL), str(ROOT), str(TESTS)]

import replay  # noqa: E402

HEAD = """
import asyncio, os, sys, threading, time
from dataclasses import dataclass
from typing import *
import outlive
from outlive import *
from outlive import blocking
app = Outlive("test")
"""


class Conversation:
    """A tool worker that runs the text of a program, and the server's side of its pipes."""

    def __init__(self, program, dev=False):
        self.folder = tempfile.TemporaryDirectory()
        file = pathlib.Path(self.folder.name, "tools.py")
        file.write_text(HEAD + textwrap.dedent(program) + "\napp.run()\n")
        self.process = replay.Process([sys.executable, str(file)])
        self.dev = dev

    def __enter__(self):
        welcome = {"protocol": 1, "server": "test", "nonce": "$NONCE", "max_concurrent": 16, "dev": self.dev}
        self.process.send({"welcome": welcome})
        self.hello = self.receive()["hello"]
        return self

    def __exit__(self, *_):
        self.process.close()
        self.folder.cleanup()

    def send(self, **members):
        self.process.send(members)

    def receive(self):
        return self.process.receive()

    def call(self, tool, call=1, journal=None, **arguments):
        self.send(call=call, tool=tool, arguments=arguments, journal=journal or {}, attempt=1, idempotency_key="k")

    def exchange(self, *expected):
        """Receives lines. Recorded results and accepted blocks get their response. Returns the lines without tracebacks."""
        lines = []
        for _ in range(expected[0] if expected else 1):
            line = self.receive()
            line.pop("traceback", None)
            lines.append(line)
            if "done" in line or line.get("permanent"):
                self.send(call=line["call"], recorded=line.get("done") or line["failed"])
        return lines

    def last(self):
        """Responds until the run ends. Returns its last line without the traceback."""
        while True:
            line = self.exchange()[0]
            if line.keys() & {"return", "result", "error", "dropped", "incompatible"}:
                return line

    def errors(self):
        return b"".join(self.process.errors).decode()
