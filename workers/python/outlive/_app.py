"""`Outlive`: the tools of a program."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import re
import shutil
import sys
from typing import Any, Callable, Generic, Iterable, Literal, Mapping, ParamSpec, TypeVar, get_type_hints, overload

from . import _context, blocking
from ._context import Cleanup, Time, milliseconds
from ._run import Result, Run
from ._schema import Codec, Member, Schema, codec, json_schema, object_schema
from ._worker import Worker, serve_process

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
DURABLE = (_context.Durable, blocking.Durable)
SECTION = re.compile(r"^(?:Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$", re.M)
ARGUMENTS = re.compile(r"^(?:Args|Arguments|Parameters):\s*$", re.M)
ARGUMENT = re.compile(r"^[ \t]+(\w+)(?: *\([^)]*\))?:[ \t]*(.+(?:\n[ \t]{6,}.+)*)", re.M)


class Handler:
    """A function of a tool, or its cleanup. Its parameters are arguments and one context."""

    def __init__(self, fn: Callable[..., Any], is_cleanup: bool = False) -> None:
        self.fn, self.blocking = fn, not inspect.iscoroutinefunction(fn)
        self.migrations: Mapping[str, Callable[[str, Any], Any]] = {}
        self.context: tuple[str, Any] | None = None
        self.fields: list[Member] = []
        self.hints, where = get_type_hints(fn, include_extras=True), f"tool `{fn.__name__}`: the parameter "
        module: Any = blocking if self.blocking else _context
        contexts = [Cleanup] if is_cleanup else [module.Durable, module.Context]
        for name, parameter in inspect.signature(fn).parameters.items():
            tp, absent = self.hints.get(name, Any), parameter.default is parameter.empty
            if tp in contexts and not self.context:
                self.context = (name, tp)
            elif tp in (*DURABLE, _context.Context, blocking.Context, Cleanup):
                kind = "a cleanup" if is_cleanup else "a `def` tool" if self.blocking else "an `async def` tool"
                names = " or ".join(f"`{one.__module__}.{one.__name__}`".replace("._context", "") for one in contexts)
                raise TypeError(f"{where}`{name}` of {kind} must be {names}, and there is one context")
            elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                self.fields.append(Member(name, tp, absent, None if absent else parameter.default))
            else:
                raise TypeError(f"{where}`{name}` has no name for callers; use a plain parameter")
        self.codecs: list[Codec] = []
        for field in self.fields:
            try:
                self.codecs.append(codec(field.type))
            except TypeError as error:
                raise TypeError(f"{where}`{field.name}`: {error}") from None

    def call(self, run: Run) -> Any:
        """Calls the function with the arguments of a run."""
        arguments = run.line.get("arguments", {})
        found = {field.name: inner.read(arguments[field.name], field.name)
                 for field, inner in zip(self.fields, self.codecs) if field.name in arguments}
        return self.fn(**found, **({self.context[0]: self.context[1](run)} if self.context else {}))


class Tool(Generic[P, R]):
    """A function that is a tool. It can still be called as a function."""

    def __init__(self, app: Outlive, fn: Callable[P, R], name: str | None = None,
                 migrate_journal: Mapping[str, Callable[[str, Any], Any]] | None = None, **options: Any) -> None:
        functools.update_wrapper(self, fn)
        self.app, self.fn, self.handler, self.name = app, fn, Handler(fn), name or fn.__name__
        self.cleanup_handler: Handler | None = None
        self.handler.migrations = migrate_journal or {}
        for option in ("task_after", "timeout"):
            options[f"{option}_ms"] = milliseconds(options.pop(option, None))
        self.options = {**options, "scopes": list(options.get("scopes") or ()) or None}
        self.entry()  # A type without a schema is an error of the declaration.

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.fn(*args, **kwargs)

    def cleanup(self, fn: F) -> F:
        """Declares the function that runs after a cancelled or expired task of this tool."""
        self.cleanup_handler = Handler(fn, is_cleanup=True)
        return fn

    def entry(self) -> Schema:
        """Returns the declared entry."""
        handler, text = self.handler, inspect.getdoc(self.fn) or ""
        schema = object_schema(handler.fields, handler.codecs)
        arguments = [*ARGUMENTS.split(text, 1), ""][1]
        for name, description in ARGUMENT.findall(SECTION.split(arguments)[0]):
            schema["properties"].get(name, {}).setdefault("description", " ".join(description.split()))
        found: Schema = {
            "name": self.name, "description": SECTION.split(text)[0].strip() or None,
            **{option: value for option, value in self.options.items() if value is not None},
            "durable": bool(handler.context and handler.context[1] in DURABLE), "inputSchema": json_schema(schema),
            "outputSchema": output_schema(handler.hints.get("return", Any)), "has_cleanup": True if self.cleanup_handler else None,
            "migrates": True if handler.migrations else None, "code": hashlib.sha256(source(self.fn)).hexdigest()[:6],
        }
        return {name: value for name, value in found.items() if value is not None}


def output_schema(tp: Any) -> Schema | None:
    """Returns the schema of a result that is an object."""
    try:
        schema = {} if tp is Result else codec(tp).schema
    except TypeError:
        return None
    return json_schema(schema) if schema.get("type") == "object" else None


def source(fn: Callable[..., Any]) -> bytes:
    try:
        return inspect.getsource(fn).encode()
    except (OSError, TypeError):
        return fn.__code__.co_code


class Outlive:
    """The tools of a program, and the objects that they share."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.worker: Worker | None = None
        self.tools: dict[str, Tool[..., Any]] = {}
        self.lifespans: list[Callable[[], Any]] = []

    @overload
    def tool(self, fn: Callable[P, R], /) -> Tool[P, R]: ...

    @overload
    def tool(self, /, *, name: str | None = None, title: str | None = None, description: str | None = None,
             task: Literal["never", "auto", "always"] | None = None, task_after: Time | None = None,
             timeout: Time | None = None, read_only: bool | None = None, destructive: bool | None = None,
             idempotent: bool | None = None, open_world: bool | None = None, scopes: Iterable[str] | None = None,
             streams_content: bool | None = None, handler_revision: str | None = None,
             migrate_journal: Mapping[str, Callable[[str, Any], Any]] | None = None,
             resume_policy: Literal["any-revision", "same-revision"] | None = None,
             on_crash: Literal["rerun", "fail"] | None = None) -> Callable[[Callable[P, R]], Tool[P, R]]: ...

    def tool(self, fn: Any = None, /, **options: Any) -> Any:
        """Declares a tool. Name, description and schemas come from the function, its docstring and its type hints."""
        def declare(fn: Callable[..., Any]) -> Tool[..., Any]:
            return self._declare(Tool(self, fn, **options))

        return declare if fn is None else declare(fn)

    def _declare(self, tool: Tool[..., Any]) -> Tool[..., Any]:
        if tool.name in self.tools:
            raise ValueError(f"the tool `{tool.name}` is declared twice; pass another `name`")
        self.tools[tool.name] = tool
        if self.worker:
            self.worker.write({"tools": self.entries()})
        return tool

    def lifespan(self, fn: F) -> F:
        """Declares a generator that opens what the process shares, yields, and closes it."""
        self.lifespans.append(fn)
        return fn

    async def open(self, stack: contextlib.AsyncExitStack) -> None:
        """Opens what the process shares."""
        for fn in self.lifespans:
            if inspect.isasyncgenfunction(fn):
                await stack.enter_async_context(contextlib.asynccontextmanager(fn)())
            else:
                stack.enter_context(contextlib.contextmanager(fn)())

    def entries(self) -> list[Schema]:
        return [tool.entry() for tool in self.tools.values()]

    def run(self) -> None:
        """Serves the tools. Started by hand, the program becomes `outlive serve FILE` with its arguments.

        Has no effect in a module that is imported, for example by a test.
        """
        caller = sys._getframe(1).f_globals
        if caller.get("__name__") != "__main__":
            return
        if os.environ.get("OUTLIVE_WORKER"):
            serve_process(self)
        program = shutil.which("outlive")
        if program is None:
            sys.exit("the program `outlive` is not on the path; install it, then run this file again")
        os.execv(program, [program, "serve", caller["__file__"], *sys.argv[1:]])
