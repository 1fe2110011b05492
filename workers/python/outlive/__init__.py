"""Durable tools for MCP: functions with steps, input requests and timers that survive crashes.

`outlive serve FILE` runs the tools of a program. A tool is an async function with a context, or a `def` with a context
of `outlive.blocking`.
"""

from . import blocking
from ._app import Outlive, Tool
from ._context import Cleanup, Context, Durable, ExternalEvent, Outcome, Principal
from ._run import Result
from ._schema import Field
from ._test import TestFailure, TestOutcome, test
from ._worker import VERSION as __version__
from .errors import Ambiguous, Cancelled, Declined, Dropped, DuplicateKey, DurableError, InsideStep, MissingCapability
from .errors import Permanent, RunEnded, TaskCancelled, TimedOut, ToolError, TooLarge

__all__ = [
    "Ambiguous", "Cancelled", "Cleanup", "Context", "Declined", "Dropped", "DuplicateKey", "Durable", "DurableError",
    "ExternalEvent", "Field", "InsideStep", "MissingCapability", "Outcome", "Outlive", "Permanent", "Principal", "Result",
    "RunEnded", "TaskCancelled", "TestFailure", "TestOutcome", "TimedOut", "Tool", "ToolError", "TooLarge", "blocking", "test",
]
