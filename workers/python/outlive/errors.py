"""Exceptions of tool workers."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Mapping


class ToolError(Exception):
    """Failure of a tool. The model reads its text."""


class Permanent(ToolError):
    """Failure of a step that another execution would repeat. The journal records its text."""


class Dropped(BaseException):
    """End of a run of a `def` handler: the server discards the run. `finally` blocks run."""


class DurableError(Exception):
    """A step, an input request, a timer or an external event without a result."""

    kinds: ClassVar[dict[str, type[DurableError]]] = {}

    def __init_subclass__(cls) -> None:
        DurableError.kinds[re.sub("(?<!^)(?=[A-Z])", "_", cls.__name__).lower()] = cls

    def __init__(self, key: str, message: str, kind: str = "", rejected: bool = False) -> None:
        super().__init__(message)
        self.key, self.kind, self.rejected = key, kind, rejected


class DuplicateKey(DurableError):
    """The run has used the key."""


class InsideStep(DurableError):
    """The operation is not allowed inside of a step."""


class RunEnded(DurableError):
    """The run has ended."""


class TooLarge(DurableError):
    """A value, a block or the journal exceeds a limit."""


class Ambiguous(DurableError):
    """A step with `once=True` was in progress when its process ended. It may have taken effect."""


class TimedOut(DurableError):
    """The input request or the external event has timed out."""


class TaskCancelled(DurableError):
    """The task is cancelled. Let this error end the handler."""


class MissingCapability(DurableError):
    """The client does not support this input request."""


class Declined(DurableError):
    """The user declined the input request."""


class Cancelled(DurableError):
    """The user dismissed the input request."""


# On the wire, `cancelled` is the cancellation of the task.
DurableError.kinds["cancelled"] = TaskCancelled


def rejection(line: Mapping[str, Any]) -> DurableError:
    """Returns the error of a `rejected` line."""
    key, kind = str(line["rejected"]), str(line.get("kind", ""))
    message = str(line.get("message") or f"the server rejected `{key}`: {kind}")
    return DurableError.kinds.get(kind, DurableError)(key, message, kind, rejected=True)
