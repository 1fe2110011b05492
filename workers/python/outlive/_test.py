"""Test kit: a server in memory that loses runs."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from ._app import Tool
from ._run import Line, join
from ._schema import to_json
from ._worker import Worker
from .errors import DurableError

TIMEOUT = 30.0
QUIET = 0.02


class TestFailure(AssertionError):
    """A handler that breaks the rules of replay, or a test that lacks a response."""

    __test__ = False


@dataclass
class TestOutcome:
    """Result of a call. `executed` counts the executions of each step, in the worst of all tried crashes."""

    __test__ = False
    line: Line
    steps: list[str]
    input_requests: list[str]
    segments: list[Any]
    status_messages: list[str]
    executed: Counter[str]
    cancelled: bool = False
    cleanup: str | None = None

    @property
    def is_error(self) -> bool:
        return "error" in self.line or bool(self.line.get("result", {}).get("isError"))

    @property
    def text(self) -> str:
        """The text that the model reads, without emitted blocks."""
        if "error" in self.line:
            kind = self.line["kind"]
            return str(self.line["error"] if kind == "ToolError" else f"{kind}: {self.line['error']}")
        if "result" in self.line:
            return "\n".join(block["text"] for block in self.line["result"]["content"] if "text" in block)
        value = self.line["return"]
        return value if isinstance(value, str) else "" if value is None else to_json(value)

    @property
    def structured(self) -> Any:
        return self.line["result"].get("structuredContent") if "result" in self.line else self.line.get("return")


class Server(Worker):
    """The worker of a test, with the queue of its lines instead of a pipe."""

    time_factor = 0

    def __init__(self, tool: Tool[..., Any]) -> None:
        super().__init__(tool.app, -1, -1)
        self.lines: queue.SimpleQueue[Line] = queue.SimpleQueue()
        self.mistake: DurableError | None = None
        self.loop, self.stack = asyncio.new_event_loop(), AsyncExitStack()
        threading.Thread(target=lambda: (self.loop.run_forever(), self.loop.close()), daemon=True).start()
        asyncio.run_coroutine_threadsafe(self.app.open(self.stack), self.loop).result()

    def write(self, members: Line) -> None:
        self.lines.put(json.loads(to_json(members)))

    def misuse(self, error: DurableError) -> DurableError:
        self.mistake = error
        return error

    async def end_runs(self) -> None:
        for run in list(self.runs.values()):
            run.drop()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.stack.aclose()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.end_runs(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.pool.shutdown(wait=False)

    def is_quiet(self, blocking: bool) -> bool:
        """Waits until the run has nothing left to do. Returns whether it has sent nothing."""
        for _ in range(10):
            passed = threading.Event()
            self.loop.call_soon_threadsafe(passed.set)
            passed.wait()
        if blocking:
            time.sleep(QUIET)
        return self.lines.empty()


@dataclass
class TestCall:
    """A call of a tool with scripted responses. See `test`."""

    __test__ = False
    tool: Tool[..., Any]
    line: Line
    responses: dict[str, list[Line]] = field(default_factory=lambda: {})
    is_strict: bool = False

    def respond(self, key: Any, response: Line) -> TestCall:
        """Scripts the members of a response, such as `{"result": …}` of sampling or `{"rejected": …, "kind": …}`."""
        self.responses.setdefault(join("", key), []).append(response)
        return self

    def accept(self, key: Any, content: Any = None, **fields: Any) -> TestCall:
        """The user accepts, with these fields."""
        return self.respond(key, {"action": "accept", "content": json.loads(to_json(fields if content is None else content))})

    def decline(self, key: Any) -> TestCall:
        return self.respond(key, {"action": "decline"})

    def cancel(self, key: Any) -> TestCall:
        return self.respond(key, {"action": "cancel"})

    def complete(self, key: Any, value: Any) -> TestCall:
        """Another system delivers the value of an external event."""
        return self.respond(key, {"value": value})

    def strict(self) -> TestCall:
        """Fails the test if a scripted response is not used."""
        self.is_strict = True
        return self

    def run(self) -> TestOutcome:
        """Runs the call. The run is replayed at every input request, and once at its end."""
        return self._play()[0]

    def crash_after(self, key: Any) -> TestOutcome:
        """Runs the call and loses the run after `key` is recorded."""
        outcome, entries = self._play()
        if (name := join("", key)) not in entries:
            raise TestFailure(f"`{name}` is never recorded; the call records {entries}")
        return self._compared(outcome, entries, entries.index(name))

    def crash_after_each(self) -> TestOutcome:
        """Runs the call once without a crash, and once with a crash after each journal entry. The results must be equal."""
        outcome, entries = self._play()
        for index in range(len(entries)):
            self._compared(outcome, entries, index)
        return outcome

    def cancel_after(self, key: Any) -> TestOutcome:
        """Runs the call and cancels its task after `key` is recorded. The cleanup of the tool runs if the handler fails."""
        return self._play(cancel_after=join("", key))[0]

    def _compared(self, outcome: TestOutcome, entries: list[str], index: int) -> TestOutcome:
        other, _ = self._play(crash_at=index + 1)
        if (other.text, other.structured, other.segments) != (outcome.text, outcome.structured, outcome.segments):
            raise TestFailure(f"after a crash behind `{entries[index]}` the result is {other.text!r}, not {outcome.text!r}; "
                              "put every effect and every decision into a step")
        outcome.executed |= other.executed
        return outcome

    def _play(self, crash_at: int = 0, cancel_after: str | None = None) -> tuple[TestOutcome, list[str]]:
        server = Server(self.tool)
        try:
            play = Play(self, server, crash_at, cancel_after)
            return play.outcome(), play.entries
        finally:
            server.close()


class Play:
    """One call: its journal, and the server's side of its runs."""

    def __init__(self, call: TestCall, server: Server, crash_at: int, cancel_after: str | None) -> None:
        self.call, self.server, self.crash_at, self.cancel_after = call, server, crash_at, cancel_after
        self.journal: dict[str, Line] = {}
        self.responses: dict[str, Line] = {}
        self.due: dict[str, int] = {}
        self.marks: set[str] = set()
        self.segments: dict[tuple[str, int], Any] = {}
        self.entries: list[str] = []
        self.inputs: list[str] = []
        self.statuses: list[str] = []
        self.executed: Counter[str] = Counter()
        self.now = self.number = 0
        self.is_cancelled = False

    def outcome(self) -> TestOutcome:
        while (last := self.run()) is None:
            pass
        executed = Counter(self.executed)
        failed = "error" in last
        if not failed and not self.is_cancelled:
            self.check_replay(last)
        if self.server.mistake:
            raise TestFailure(str(self.server.mistake)) from self.server.mistake
        if self.cancel_after and not self.is_cancelled:
            raise TestFailure(f"`{self.cancel_after}` is never recorded; the call records {self.entries}")
        unused = [key for key in self.call.responses if key not in self.responses]
        if self.call.is_strict and unused:
            raise TestFailure(f"the scripted responses to {unused} are not used")
        steps = [key for key in self.entries if key in self.journal]
        blocks = list(self.segments.values())
        outcome = TestOutcome(last, steps, self.inputs, blocks, self.statuses, executed, self.is_cancelled and failed)
        if outcome.cancelled and self.call.tool.cleanup_handler:
            done = self.run("cleanup", reason="cancelled") or {}
            outcome.cleanup = "done" if "done" in done else str(done.get("error"))
        return outcome

    def check_replay(self, last: Line) -> None:
        again, self.crash_at = self.run(), 0
        missing = [key for key in self.entries if key not in self.seen]
        if missing:
            raise TestFailure(f"a replay does not request {missing}; base every decision on recorded values")
        if again is None or {**again, "call": 0} != {**last, "call": 0}:
            raise TestFailure(f"a replay returns {again}, not {last}; put every effect and every decision into a step")

    def run(self, name: str = "call", **more: Any) -> Line | None:
        """Runs the handler. Returns its last line, or None if the run was lost."""
        self.number += 1
        self.tag = {name: self.number}
        self.last: Line | None = None
        self.is_lost = False
        self.open: set[str] = set()
        self.seen: set[str] = set()
        self.pending: dict[str, Line] = {}
        self.ordinals: Counter[str] = Counter()
        answers = {key: {"a": line} for key, line in self.responses.items()} if name == "cleanup" else {}
        self.send(**self.call.line, journal={**self.journal, **answers}, attempt=1, **more)
        if self.is_cancelled and name == "call":
            self.send(cancel="requested by the client")
        while self.last is None:
            is_waiting = self.pending and not self.open and not self.is_lost and self.server.lines.empty()
            if is_waiting and self.server.is_quiet(self.call.tool.handler.blocking):
                self.advance()
                continue
            try:
                line = self.server.lines.get(timeout=TIMEOUT)
            except queue.Empty:
                raise TestFailure(f"the handler has not continued for {TIMEOUT} s; it waits for something outside of its context") from None
            self.handle(line)
        return None if "dropped" in self.last else self.last

    def send(self, **members: Any) -> None:
        self.server.receive([json.loads(to_json({**self.tag, **members}))])

    def lose(self, reason: str) -> None:
        if not self.is_lost:
            self.is_lost = True
            self.send(drop=reason)

    def record(self, key: str) -> bool:
        """Counts a new journal entry. Returns whether the run still exists."""
        self.entries.append(key)
        if len(self.entries) == self.crash_at:
            self.lose("lease_lost")
        return not self.is_lost

    def handle(self, line: Line) -> None:
        match line:
            case {"return": _} | {"result": _} | {"error": _, "call": _} | {"dropped": _} | {"cleanup": _}:
                self.last = line
            case {"incompatible": key, "message": text}:
                raise TestFailure(f"the journal entry `{key}` does not fit its type: {text}")
            case _ if self.is_lost:
                pass
            case {"step": key}:
                self.seen.add(key)
                if "once" in line and key in self.marks:
                    text = f"step `{key}` was in progress when its worker crashed; check whether it took effect"
                    return self.send(rejected=key, kind="ambiguous", message=text)
                self.open.add(key)
                self.executed[key] += 1
                if "once" in line:
                    self.marks.add(key)
                    self.send(go=key)
            case {"done": key} | {"failed": key, "permanent": True}:
                self.open.discard(key)
                self.journal[key] = {"f": {"message": line["error"]}} if "failed" in line else {"v": line["value"]}
                if self.record(key):
                    self.send(recorded=key)
                    if key == self.cancel_after:
                        self.is_cancelled = True
                        self.send(cancel="requested by the client")
            case {"failed": key}:
                self.open.discard(key)
            case {"input": key} | {"sleep": key} | {"external_event": key}:
                self.seen.add(key)
                self.pending[key] = line
                if "input" in line and key not in self.inputs:
                    self.inputs.append(key)
                if "sleep" in line and key not in self.due:
                    self.due[key] = self.now + line["ms"]
                    self.record(key)
                if "external_event" in line:
                    self.send(completion_token=key, value=f"token of {key}")
            case {"withdraw": key}:
                self.pending.pop(key, None)
            case {"replayed": keys}:
                self.seen.update(keys)
            case {"status_message": text}:
                self.statuses.append(text)
            case {"emit": block}:
                place = line.get("in", "")
                stored = self.segments.setdefault((place, self.ordinals[place]), block)
                self.ordinals[place] += 1
                if stored != block:
                    raise TestFailure(f"a replay emits {block}, not {stored}; base every decision on recorded values")
                self.send(stored_segments=sum(self.ordinals.values()))
            case _:
                pass

    def advance(self) -> None:
        """Continues an idle run: with responses, which replay it, or with the next timer."""
        if self.is_cancelled:
            for key in self.pending:
                self.send(rejected=key, kind="cancelled", message=f"the task was cancelled before `{key}` completed")
            return self.pending.clear()
        waits = [key for key, line in self.pending.items() if "sleep" not in line]
        known = [key for key in waits if key in self.responses]
        for key in known:
            self.deliver(key, self.pending.pop(key))
        if known:
            return
        for key in waits:
            left = self.call.responses.get(key)
            if not left:
                raise TestFailure(f"`{key}` has no scripted response; add `.accept({key!r}, …)` or `.complete({key!r}, …)`")
            self.responses[key] = left[0]
            if not self.record(key):
                return
        if waits:
            return self.lose("suspended")
        key = min(self.pending, key=lambda key: self.due[key])
        self.now = max(self.now, self.due[key])
        del self.pending[key]
        self.send(woke=key)

    def deliver(self, key: str, line: Line) -> None:
        response = self.responses[key]
        if "rejected" in response:
            self.send(**response)
        elif "external_event" in line:
            self.send(completed=key, value=response["value"])
        else:
            self.send(response=key, **response)


def test(tool: Tool[..., Any], /, **arguments: Any) -> TestCall:
    """Prepares a call of a tool in memory. Time is skipped.

    The test fails if the results of two runs differ, if a run uses a key twice, or if a replay requests less.
    """
    principal: Line = {"name": "test", "scopes": []}
    line: Line = {"tool": tool.name, "arguments": json.loads(to_json(arguments)), "idempotency_key": "test", "principal": principal}
    return TestCall(tool, line)
