"""Contexts of async handlers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Awaitable, Callable, Generator, Generic, Literal, Mapping, Sequence, TypeVar, overload

from ._run import EXECUTING, Body, Done, Line, Run, check_size, join
from ._schema import Mismatch, codec, return_type, to_json
from ._schema import form as read_form
from .errors import Cancelled, Declined, Permanent

T = TypeVar("T")
Self = TypeVar("Self", bound="Journal")
Key = str | tuple[object, ...]
Time = float | timedelta
Audience = Literal["client", "caller"] | Sequence[str] | Mapping[Literal["scope"], str]
Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
MAX_BACKOFF = 10.0


@dataclass(frozen=True)
class Principal:
    """The authenticated caller."""

    name: str
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """The user's action on an input request. Only `accept` has content."""

    action: Literal["accept", "decline", "cancel"]
    content: T | None = None


class Base:
    """Members of all contexts."""

    def __init__(self, run: Run, scope: str = "") -> None:
        self._run, self._scope = run, scope

    @property
    def principal(self) -> Principal | None:
        """The caller, or None for an anonymous caller."""
        found = self._run.line.get("principal")
        return Principal(found["name"], tuple(found.get("scopes", ()))) if found else None

    def idempotency_key(self, key: Key) -> str:
        """Returns a key for other systems, which is the same in every run of this call."""
        text = str(self._run.line.get("idempotency_key", "")) + join(self._scope, key)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


class Status(Base):
    """Members of the contexts of handlers."""

    @property
    def cancelled(self) -> bool:
        """Whether the client has cancelled the call."""
        return self._run.cancelled is not None

    @property
    def attempt(self) -> int:
        """1, plus the number of processes in a row that this call lost."""
        return int(self._run.line.get("attempt", 1))

    def set_status_message(self, text: str) -> Done:
        """Sets the status message of the task."""
        return self._run.send(status_message=text)

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> Done:
        """Reports progress."""
        return self._run.send(progress=done, total=total, message=message)

    report_progress = progress

    def log(self, level: Level, data: Any) -> Done:
        """Sends a log message to the client."""
        return self._run.send(log=level, data=data)

    def debug(self, data: Any) -> Done:
        return self.log("debug", data)

    def info(self, data: Any) -> Done:
        return self.log("info", data)

    def warning(self, data: Any) -> Done:
        return self.log("warning", data)

    def error(self, data: Any) -> Done:
        return self.log("error", data)


class Journal(Base):
    """Members of the contexts with a journal."""

    def scope(self: Self, key: Key) -> Self:
        """Returns a context whose keys have `key` as their prefix, for helpers and loops."""
        return type(self)(self._run, join(self._scope, key))

    def get(self, key: Key, type: Any = Any) -> Any:
        """Returns the recorded result of a step, or None."""
        full = join(self._scope, key)
        return self._run.recorded(full, self._run.journal[full], type) if full in self._run.journal else None


class Cleanup(Journal):
    """Context of a cleanup, which runs after a cancelled or expired task."""

    @property
    def reason(self) -> str:
        """`cancelled` or `expired`."""
        return str(self._run.line["reason"])


class Context(Status):
    """Context of an async handler that runs once."""

    async def emit(self, block: str | Mapping[str, Any]) -> None:
        """Adds a content block to the result while the handler runs. Waits if the server is behind."""
        run, body, place = self._run, EXECUTING.get(), self._scope
        block = {"type": "text", "text": block} if isinstance(block, str) else block
        check_size("emit", "the block", to_json(block), "split it")
        if body and body.run is run:
            place, body.emitted = body.key, body.emitted + 1
            if body.emitted <= run.sent.get(place, 0):
                return  # An earlier attempt of this step has sent it.
        await run.capacity()
        run.sent[place] = run.sent.get(place, 0) + 1
        run.send(emit=block, **({"in": place} if place else {}))


class ExternalEvent(Generic[T]):
    """A value that another system delivers: `await event`."""

    def __init__(self, run: Run, key: str, token: str, type: Any) -> None:
        self._run, self._key, self._type, self.token = run, key, type, token
        self._line: Line | None = None

    def __await__(self) -> Generator[Any, None, T]:
        return self.value().__await__()

    async def value(self) -> T:
        """Waits for the value."""
        self._line = self._line or await self._run.reply(self._key, withdraw=True)
        found: T = codec(self._type).read(self._line.get("value"), self._key)
        return found


class Durable(Context, Journal):
    """Context of an async handler that may run again from its first line."""

    @overload
    async def step(self, key: Key, fn: Callable[..., Awaitable[T]], *args: Any,
                   retry: int = 1, once: bool = False, secret: bool = False) -> T: ...

    @overload
    async def step(self, key: Key, fn: Callable[..., T], *args: Any,
                   retry: int = 1, once: bool = False, secret: bool = False) -> T: ...

    async def step(self, key: Key, fn: Callable[..., Any], *args: Any,
                   retry: int = 1, once: bool = False, secret: bool = False) -> Any:
        """Executes `fn(*args)` and records its result. A replay returns the recorded result.

        `retry` is the number of attempts. With `once` the function never executes twice: if its process ends, the
        step raises `Ambiguous`. The server shows a `secret` result to no person and sends it to no client.
        """
        run, full = self._run, join(self._scope, key)
        if not callable(fn):
            raise TypeError(f"step `{full}` needs a function and its arguments, such as `ctx.step(key, build, repo)`, not a result")
        tp, full = return_type(fn), run.take(self._scope, key)
        if full in run.journal:
            return run.recorded(full, run.journal[full], tp)
        run.send(step=full, once=once or None)
        if once and "recorded" in (line := await run.reply(full)):
            return run.recorded(full, {"f": {"message": line["failed"]}} if "failed" in line else {"v": line["value"]}, tp)
        attempt = 0
        while True:
            attempt += 1
            try:
                value = await run.execute(Body(run, full), fn, args)
                check_size(full, f"the result of `{full}`", text := to_json(value), "record less, such as a name")
                found = codec(tp).read(value := json.loads(text), full)
                break
            except Mismatch as error:
                await self._fail(full, TypeError(f"step `{full}` returned another type than its annotation: {error}"), once)
            except Exception as error:
                permanent = once or isinstance(error, Permanent)
                if permanent or attempt >= retry or run.cancelled is not None:
                    await self._fail(full, error, permanent)
            await run.pause(min(0.1 * 2 ** (attempt - 1), MAX_BACKOFF))
        run.send(done=full, value=value, secret=secret or None)
        await run.reply(full)
        run.journal[full] = {"v": value}
        run.noted.add(full)
        return found

    async def _fail(self, key: str, error: Exception, permanent: bool) -> None:
        text = str(error) or type(error).__name__
        self._run.send(failed=key, error=text, kind=type(error).__name__, permanent=permanent or None)
        if permanent:
            await self._run.reply(key)
            raise Permanent(text) from error
        self._run.used.discard(key)
        raise error

    async def _input(self, key: Key, timeout: Time | None, audience: Audience | None, **request: Any) -> tuple[str, Line]:
        full = self._run.take(self._scope, key)
        self._run.send(input=full, timeout_ms=milliseconds(timeout), audience=audience, **request)
        return full, await self._run.reply(full, withdraw=True)

    @overload
    async def elicit(self, key: Key, message: str, form: type[T], *, timeout: Time | None = None,
                     audience: Audience | None = None, outcome: Literal[False] = False) -> T: ...

    @overload
    async def elicit(self, key: Key, message: str, form: type[T], *, timeout: Time | None = None,
                     audience: Audience | None = None, outcome: Literal[True]) -> Outcome[T]: ...

    @overload
    async def elicit(self, key: Key, message: str, form: Any, *, timeout: Time | None = None,
                     audience: Audience | None = None, outcome: bool = False) -> Any: ...

    async def elicit(self, key: Key, message: str, form: Any, *, timeout: Time | None = None,
                     audience: Audience | None = None, outcome: bool = False) -> Any:
        """Requests that the user fills in a form: a dataclass, a TypedDict, `bool` or `Literal[…]`.

        Raises `Declined` or `Cancelled` if the user does not accept, unless `outcome` is true.
        """
        fields, required, read = read_form(form, join(self._scope, key))
        full, line = await self._input(key, timeout, audience, message=message, fields=fields, required=required)
        return settle(full, line, read, outcome)

    async def elicit_url(self, key: Key, message: str, url: str, *, timeout: Time | None = None,
                         audience: Audience | None = None, outcome: bool = False) -> Outcome[None] | None:
        """Requests that the user opens a page, for a login, a payment or a password."""
        full, line = await self._input(key, timeout, audience, message=message, url=url)
        result: Outcome[None] | None = settle(full, line, lambda content: None, outcome)
        return result

    async def sample(self, key: Key, prompt: str | Sequence[Mapping[str, Any]], *, max_tokens: int = 1000,
                     timeout: Time | None = None, **params: Any) -> dict[str, Any]:
        """Requests a message of the client's model. `params` are further parameters of `sampling/createMessage`."""
        messages = [{"role": "user", "content": {"type": "text", "text": prompt}}] if isinstance(prompt, str) else prompt
        _, line = await self._input(key, timeout, None, sample={"messages": messages, "maxTokens": max_tokens, **params})
        return dict(line["result"])

    async def sleep(self, key: Key, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Waits. The time starts when the call first reaches this key, and uses no memory meanwhile."""
        full = self._run.take(self._scope, key)
        span = timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
        self._run.send(sleep=full, ms=milliseconds(span))
        await self._run.reply(full, withdraw=True)

    async def external_event(self, key: Key, type: Any = Any, *, timeout: Time | None = None) -> ExternalEvent[Any]:
        """Creates an event for which another system delivers a value. `await` the result for the value."""
        full = self._run.take(self._scope, key)
        self._run.send(external_event=full, timeout_ms=milliseconds(timeout))
        return ExternalEvent(self._run, full, (await self._run.reply(full, withdraw=True))["value"], type)


def milliseconds(time: Time | None) -> int | None:
    """Returns a time as the protocol has it."""
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    return None if seconds is None else max(0, round(seconds * 1000))


def settle(key: str, line: Line, read: Callable[[Any], Any], outcome: bool) -> Any:
    """Returns the content of a response, or the user's action."""
    action = line["action"]
    content = read(line.get("content")) if action == "accept" else None
    if action == "decline" and not outcome:
        raise Declined(key, f"the user declined the input request `{key}`")
    if action == "cancel" and not outcome:
        raise Cancelled(key, f"the user cancelled the input request `{key}`")
    return Outcome(action, content) if outcome else content
