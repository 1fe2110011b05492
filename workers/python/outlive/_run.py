"""One run of a handler: its keys, its open requests and its last line."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import traceback
from concurrent import futures
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Generator, TypeVar

from ._schema import Mismatch, codec, is_a, to_json
from .errors import (
    Dropped, DuplicateKey, DurableError, InsideStep, Permanent, RunEnded, TaskCancelled, ToolError, TooLarge, rejection,
)

if TYPE_CHECKING:
    from ._app import Handler
    from ._worker import Worker

T = TypeVar("T")
Line = dict[str, Any]
MAX_LINE = 4 << 20
MAX_VALUE = MAX_LINE - (8 << 10)  # The entry must also fit a line of a later call.
MAX_TEXT = 16 << 10
MAX_AHEAD = 64
REPLIES = ("recorded", "go", "rejected", "response", "woke", "completion_token", "completed")


class Gate(futures.Future["Line | None"]):
    """The line that a `def` handler waits for. `drive` blocks the thread of the handler meanwhile."""

    def __await__(self) -> Generator[Gate, None, Line | None]:
        yield self
        return self.result()


class Done:
    """Result of functions that do not wait, so that `await ctx.info(…)` works too."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in this thread. It may only await gates."""
    try:
        while True:
            coroutine.send(None).result()
    except StopIteration as stop:
        result: T = stop.value
        return result


@dataclass
class Result:
    """A result of several content blocks, or with structured content beside text."""

    content: list[dict[str, Any]]
    structured: Any = None
    is_error: bool = False


@dataclass
class Body:
    """The body of a step that is being executed."""

    run: Run
    key: str
    emitted: int = 0


EXECUTING: contextvars.ContextVar[Body | None] = contextvars.ContextVar("outlive_step", default=None)


def join(scope: str, key: Any) -> str:
    """Returns a journal key: the parts, escaped and joined by `/`."""
    parts = key if is_a(tuple, key) else (key,)
    for part in parts:
        kind = part.__class__
        has_address = kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
        if has_address or isinstance(part, (type(None), set, frozenset, dict, list, tuple)):
            raise TypeError(f"`{part!r}` cannot be a part of a key; use text, a number or an ID")
    escaped = (str(part).replace("\\", "\\\\").replace("/", "\\/").replace("#", "\\#") for part in parts)
    return "/".join([*filter(None, [scope]), *escaped])


class Run:
    """State of one run. The event loop or, for a `def` handler, several threads use it."""

    def __init__(self, worker: Worker, handler: Handler, line: Line, journal: dict[str, Any]) -> None:
        self.worker, self.handler, self.line, self.journal = worker, handler, line, journal
        self.tag: dict[str, int] = {name: line[name] for name in ("call", "cleanup") if name in line}
        self.lock, self.stopped = threading.RLock(), threading.Event()
        self.used: set[str] = set()
        self.noted: set[str] = set()  # keys that the server knows to be requested
        self.replayed: list[str] = []
        self.waiting: dict[str, asyncio.Future[Line | None] | Gate] = {}
        self.early: dict[str, list[Line]] = {}  # lines that no code waits for yet
        self.state = "new"  # then `running`, `dropped` and `ended`
        self.is_incompatible = False
        self.cancelled: str | None = None
        self.emitted = self.stored = 0
        self.sent: dict[str, int] = {}
        self.rejected_blocks: list[DurableError] = []
        self.bodies: set[futures.Future[Any]] = set()
        self.task: asyncio.Task[None] | None = None

    # Life of the run.

    async def main(self) -> None:
        """Calls the handler and sends the last line."""
        try:
            self.check("call")
            self.state = "running"
            result = self.handler.call(self)
            last = self.success(await result if inspect.isawaitable(result) else result)
        except BaseException as error:
            last = self.failure(error)
        if self.state == "dropped" and self.bodies:  # threads that cannot be interrupted
            await asyncio.wait([asyncio.wrap_future(body) for body in self.bodies])
        with self.lock:
            if self.state == "running":
                self.write(last)
            elif not self.is_incompatible:
                self.write({"dropped": True})
            self.state = "ended"
        self.worker.ended(self)

    def drop(self) -> None:
        """Ends the run without a result. Its next operation raises."""
        with self.lock:
            was_running, self.state = self.state == "running", "dropped"
            self.stopped.set()
        if self.handler.blocking:
            for key in list(self.waiting):
                self.resolve(key, None)
        elif was_running and self.task and self.task is not asyncio.current_task():
            self.task.cancel()

    def success(self, result: Any) -> Line:
        members: Line = {"done": True} if "cleanup" in self.tag else {"return": result}
        if isinstance(result, Result):
            optional = {"structuredContent": result.structured, "isError": result.is_error or None}
            members = {"result": {"content": result.content, **{k: v for k, v in optional.items() if v is not None}}}
        check_size("", "the result", to_json(members), "use emit, or return a link")
        return members

    def failure(self, error: BaseException) -> Line:
        kind = "ToolError" if isinstance(error, (ToolError, DurableError)) else type(error).__name__
        text = str(error)[:MAX_TEXT] or type(error).__name__
        if self.worker.dev and kind != "ToolError":
            text += f" ({place_of(error)})"
        lines = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-MAX_TEXT:]
        rejected = {"rejected": error.key} if isinstance(error, DurableError) and error.rejected else {}
        return {"error": text, "kind": kind, "traceback": lines, **rejected}

    # Lines.

    def receive(self, line: Line) -> None:
        """Handles a line of the server. The first one starts the handler, in a thread or as a task."""
        if "tool" in line and self.handler.blocking:
            threading.Thread(target=lambda: drive(self.main()), daemon=True).start()
        elif "tool" in line:
            self.task = asyncio.get_running_loop().create_task(self.main())
        elif "drop" in line:
            self.drop()
        elif "cancel" in line:
            self.cancelled = str(line["cancel"])
            self.stopped.set()
        elif "stored_segments" in line or "segment" in line:
            with self.lock:
                self.stored = max(self.stored, line.get("stored_segments", 0))
                self.rejected_blocks += [rejection(line)] if "segment" in line else []
            self.resolve("", {})
        elif key := next((line[name] for name in REPLIES if name in line), None):
            self.resolve(key, line)
        else:
            self.worker.log(f"unknown message: {to_json(line)[:200]}")

    def resolve(self, key: str, line: Line | None) -> None:
        with self.lock:
            waiter = self.waiting.pop(key, None)
            if waiter is None and key and line:
                self.early.setdefault(key, []).append(line)
            elif waiter is not None and not waiter.done():
                waiter.set_result(line)

    def waiter(self, key: str) -> asyncio.Future[Line | None] | Gate:
        waiter = Gate() if self.handler.blocking else asyncio.get_running_loop().create_future()
        return self.waiting.setdefault(key, waiter)

    async def reply(self, key: str, withdraw: bool = False) -> Line:
        """Returns the next line of the server for a key. Raises if it is a rejection."""
        with self.lock:
            self.check(key)
            line: Line | None = self.early[key].pop(0) if self.early.get(key) else None
            waiter = None if line else self.waiter(key)
        try:
            line = await waiter if waiter else line
        except asyncio.CancelledError:
            if withdraw and self.state == "running":
                self.send(withdraw=key)
            raise
        self.check(key)
        if line and "rejected" in line:
            raise rejection(line)
        return line or {}

    async def capacity(self) -> None:
        """Waits until another block may be emitted, and counts it."""
        while True:
            with self.lock:
                self.check("emit")
                if self.rejected_blocks:
                    raise self.rejected_blocks.pop(0)
                if self.emitted - self.stored < MAX_AHEAD:
                    self.emitted += 1
                    return
                waiter = self.waiter("")
            # Branches share the waiter, and one of them may be cancelled.
            await (asyncio.shield(waiter) if isinstance(waiter, asyncio.Future) else waiter)

    def send(self, **members: Any) -> Done:
        with self.lock:
            self.check("send")
            self.write({name: value for name, value in members.items() if value is not None or name in ("value", "data")})
        return Done()

    def write(self, members: Line) -> None:
        if self.replayed and "dropped" not in members:
            self.worker.write({**self.tag, "replayed": self.replayed})
            self.replayed = []
        self.worker.write({**self.tag, **members})

    # Checks before an operation.

    def check(self, key: str) -> None:
        """Raises if the run has ended."""
        if self.state == "ended":
            raise RunEnded(key, f"`{key}` is used after its run has ended")
        if self.state == "dropped":
            raise Dropped() if self.handler.blocking else asyncio.CancelledError()

    def take(self, scope: str, key: Any) -> str:
        """Returns the full key of an operation that starts. Raises if the operation is not allowed."""
        full, body = join(scope, key), EXECUTING.get()
        with self.lock:
            self.check(full)
            if body and body.run is self:
                text = f"`{full}` is used inside the step `{body.key}`; start steps, input requests and timers outside of steps"
                raise self.worker.misuse(InsideStep(full, text))
            if self.cancelled is not None:
                raise TaskCancelled(full, f"the task was cancelled before `{full}` completed")
            if full in self.used:
                text = f"the key `{full}` is used twice in one run; add a part, such as `(\"push\", region)`, or use a scope"
                raise self.worker.misuse(DuplicateKey(full, text))
            self.used.add(full)
        return full

    # Steps.

    def recorded(self, key: str, entry: Line, tp: Any) -> Any:
        """Returns the value of a journal entry, or raises its failure."""
        migrate = self.handler.migrations.get(entry.get("r", ""))
        value = next((entry[name] for name in ("v", "x") if name in entry), entry.get("a", {}).get("content"))
        try:
            found = None if "f" in entry else codec(tp).read(migrate(key, value) if migrate else value, key)
        except Mismatch as error:
            if "call" in self.tag:
                self.send(incompatible=key, message=str(error))
                self.is_incompatible = True
                self.drop()
            self.check(key)
            raise
        if key not in self.noted and "call" in self.tag:
            self.noted.add(key)
            self.replayed.append(key)
        if "f" in entry:
            raise Permanent(entry["f"]["message"])
        return found

    async def execute(self, body: Body, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Executes the body of a step. A `def` function of an async handler runs in a thread."""
        token = EXECUTING.set(body)
        try:
            if self.handler.blocking or inspect.iscoroutinefunction(fn):
                value = fn(*args)
            else:
                future = self.worker.pool.submit(contextvars.copy_context().run, fn, *args)
                self.bodies.add(future)
                future.add_done_callback(self.bodies.discard)
                value = await asyncio.wrap_future(future)
            if inspect.isawaitable(value) and self.handler.blocking:
                raise TypeError(f"the body of step `{body.key}` is async; make the tool async too")
            return await value if inspect.isawaitable(value) else value
        finally:
            EXECUTING.reset(token)

    async def pause(self, seconds: float) -> None:
        """Waits between two attempts of a step."""
        if self.handler.blocking:
            self.stopped.wait(seconds * self.worker.time_factor)
        else:
            await asyncio.sleep(seconds * self.worker.time_factor)
        self.check("retry")


def check_size(key: str, name: str, text: str, remedy: str) -> None:
    """Raises if a JSON value does not fit a line."""
    if (size := len(text.encode())) > MAX_VALUE:
        raise TooLarge(key, f"{name} has {size} bytes, above the limit of {MAX_VALUE}; {remedy}")


def place_of(error: BaseException) -> str:
    """Returns the innermost line of the author's code in a traceback."""
    library = {PurePath(module).parent for module in (__file__, inspect.__file__, asyncio.__file__, futures.__file__)}
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if PurePath(frame.filename).parent not in library and "-packages" not in frame.filename]
    frame = (own or frames)[-1]
    return f"{PurePath(frame.filename).name}:{frame.lineno} in {frame.name}"
