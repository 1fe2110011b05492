"""Contexts of `def` handlers, which have a thread of their own."""

from __future__ import annotations

from typing import Any, Callable, Generic, Literal, Mapping, Sequence, TypeVar, overload

from . import _context as asynchronous
from ._context import Audience, Journal, Key, Outcome, Status, Time
from ._run import drive

T = TypeVar("T")


class Context(Status):
    """Context of a `def` handler that runs once."""

    def emit(self, block: str | Mapping[str, Any]) -> None:
        """Adds a content block to the result while the handler runs. Waits if the server is behind."""
        drive(asynchronous.Context(self._run, self._scope).emit(block))


class ExternalEvent(Generic[T]):
    """A value that another system delivers."""

    def __init__(self, event: asynchronous.ExternalEvent[T]) -> None:
        self._event, self.token = event, event.token

    def wait(self) -> T:
        """Waits for the value."""
        return drive(self._event.value())


class Durable(Context, Journal):
    """Context of a `def` handler that may run again from its first line. See `outlive.Durable`."""

    @property
    def _async(self) -> asynchronous.Durable:
        return asynchronous.Durable(self._run, self._scope)

    def step(self, key: Key, fn: Callable[..., T], *args: Any, retry: int = 1, once: bool = False, secret: bool = False) -> T:
        """Executes `fn(*args)` and records its result. A replay returns the recorded result."""
        return drive(self._async.step(key, fn, *args, retry=retry, once=once, secret=secret))

    @overload
    def elicit(self, key: Key, message: str, form: type[T], *, timeout: Time | None = None,
               audience: Audience | None = None, outcome: Literal[False] = False) -> T: ...

    @overload
    def elicit(self, key: Key, message: str, form: type[T], *, timeout: Time | None = None,
               audience: Audience | None = None, outcome: Literal[True]) -> Outcome[T]: ...

    @overload
    def elicit(self, key: Key, message: str, form: Any, *, timeout: Time | None = None,
               audience: Audience | None = None, outcome: bool = False) -> Any: ...

    def elicit(self, key: Key, message: str, form: Any, **options: Any) -> Any:
        """Requests that the user fills in a form."""
        return drive(self._async.elicit(key, message, form, **options))

    def elicit_url(self, key: Key, message: str, url: str, *, timeout: Time | None = None,
                   audience: Audience | None = None, outcome: bool = False) -> Outcome[None] | None:
        """Requests that the user opens a page, for a login, a payment or a password."""
        return drive(self._async.elicit_url(key, message, url, timeout=timeout, audience=audience, outcome=outcome))

    def sample(self, key: Key, prompt: str | Sequence[Mapping[str, Any]], *, max_tokens: int = 1000,
               timeout: Time | None = None, **params: Any) -> dict[str, Any]:
        """Requests a message of the client's model."""
        return drive(self._async.sample(key, prompt, max_tokens=max_tokens, timeout=timeout, **params))

    def sleep(self, key: Key, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Waits. The time starts when the call first reaches this key."""
        drive(self._async.sleep(key, seconds=seconds, minutes=minutes, hours=hours, days=days))

    def external_event(self, key: Key, type: Any = Any, *, timeout: Time | None = None) -> ExternalEvent[Any]:
        """Creates an event for which another system delivers a value."""
        return ExternalEvent(drive(self._async.external_event(key, type, timeout=timeout)))
