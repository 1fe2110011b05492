"""JSON schemas, JSON values and forms, from type hints."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import re
import types
from collections import abc
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from typing import Annotated, Any, Callable, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints
from uuid import UUID

Schema = dict[str, Any]
Read = Callable[[Any, str], Any]
NULL = {"type": "null"}
BASIC: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
# Types that are text in JSON: their format, and the function that reads the text.
TEXT: dict[Any, tuple[str, Callable[[str], Any]]] = {
    datetime: ("date-time", lambda text: datetime.fromisoformat(re.sub("Z$", "+00:00", text))),
    date: ("date", date.fromisoformat),
    time: ("time", lambda text: time.fromisoformat(re.sub("Z$", "+00:00", text))),
    UUID: ("uuid", UUID), Decimal: ("", Decimal), Path: ("", Path), PurePath: ("", PurePath),
}
SETS: dict[Any, Any] = {set: set, abc.Set: set, frozenset: frozenset}
LISTS: dict[Any, Any] = {list: list, tuple: tuple, abc.Sequence: list, abc.Iterable: list, **SETS}
KEYWORDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum", "multiple_of": "multipleOf",
            "pattern": "pattern", "format": "format", "title": "title", "description": "description"}
LENGTHS = {"array": ("minItems", "maxItems"), "object": ("minProperties", "maxProperties")}


class Field:
    """Constraints and description of a parameter or field, for `Annotated[int, Field(ge=1, le=50)]`."""

    def __init__(self, description: str | None = None, *, title: str | None = None, ge: float | None = None,
                 gt: float | None = None, le: float | None = None, lt: float | None = None,
                 multiple_of: float | None = None, min_length: int | None = None, max_length: int | None = None,
                 pattern: str | None = None, format: str | None = None) -> None:
        self.__dict__.update({name: value for name, value in locals().items() if name != "self"})


class Mismatch(ValueError):
    """A JSON value that does not fit its type."""


class Member(NamedTuple):
    """A parameter of a function, or a field of a dataclass, TypedDict or NamedTuple."""

    name: str
    type: Any
    required: bool
    default: Any = None


class Codec(NamedTuple):
    """JSON Schema of a type, and the function that converts JSON to it. The function gets the path of the value."""

    schema: Schema
    read: Read


def codec(tp: Any, outer: tuple[Any, ...] = ()) -> Codec:
    """Returns the codec of a type inside of `outer` types. Raises a TypeError if the type has no JSON form."""
    tp = resolve(tp)
    kind: Any = get_origin(tp) or tp
    args = get_args(tp)
    if kind in (Any, object, inspect.Parameter.empty):
        return Codec({}, _read_any)
    if kind in BASIC:
        return Codec({"type": BASIC[kind]}, functools.partial(_read_basic, kind))
    if kind in TEXT:
        return Codec({"type": "string", **_some(format=TEXT[kind][0])}, functools.partial(_read_text, kind))
    if kind is Literal:
        return Codec(_choices(args), functools.partial(_read_choice, tp, args, _read_any))
    if is_a(type, kind) and issubclass(kind, Enum):
        values = tuple(member.value for member in kind)
        return Codec(_choices(values), functools.partial(_read_choice, tp, values, kind))
    if callable(getattr(kind, "model_json_schema", None)) and callable(getattr(kind, "model_validate", None)):
        return Codec(kind.model_json_schema(), functools.partial(_read_model, kind))
    fields = members(kind) if is_a(type, kind) else None
    if fields is not None and kind not in outer:
        inner = [codec(field.type, (*outer, kind)) for field in fields]
        if issubclass(kind, tuple):
            return _tuple(tp, inner, sum(field.required for field in fields), getattr(tp, "_make"))
        return Codec(object_schema(fields, inner), functools.partial(_read_object, kind, fields, inner))
    if kind is not Annotated and kind not in (Union, types.UnionType, dict, abc.Mapping, *LISTS):
        reason = "refers to itself" if fields else "has no JSON form; use a dataclass, a TypedDict or a basic type"
        raise TypeError(f"the type `{name_of(tp)}` {reason}")
    inner = [codec(arm, outer) for arm in (args[:1] if kind is Annotated else args) if arm is not ...]
    if kind is Annotated:
        return Codec(constrain(inner[0].schema, tp.__metadata__), inner[0].read)
    if kind in (Union, types.UnionType):
        return Codec({"anyOf": [arm.schema for arm in inner]}, functools.partial(_read_union, tp, args, inner))
    if kind is tuple and args and args[-1] is not ...:
        return _tuple(tp, inner, len(args), tuple)
    items = inner[-1] if inner else Codec({}, _read_any)
    if kind in LISTS:
        schema = {"type": "array", **_some(items=items.schema, uniqueItems=kind in SETS)}
        return Codec(schema, functools.partial(_read_list, tp, LISTS[kind], items.read))
    read_key = _read_int_key if args and resolve(args[0]) is int else inner[0].read if args else _read_any
    return Codec({"type": "object", **_some(additionalProperties=items.schema)}, functools.partial(_read_dict, tp, read_key, items.read))


def resolve(tp: Any) -> Any:
    """Returns the type behind `NewType`, `type X = …` and the qualifiers of a TypedDict."""
    if hasattr(tp, "__supertype__"):
        return resolve(tp.__supertype__)
    if type(tp).__name__ == "TypeAliasType":
        return resolve(tp.__value__)
    return resolve(get_args(tp)[0]) if qualifier(tp) else type(None) if tp is None else tp


def qualifier(tp: Any) -> str:
    """Returns the qualifier of a field of a TypedDict."""
    name = getattr(get_origin(tp), "_name", None) or ""
    return name if name in ("Required", "NotRequired", "ReadOnly") else ""


def name_of(tp: Any) -> str:
    """Returns the name of a type as its author writes it."""
    return tp.__name__ if isinstance(tp, type) and not get_args(tp) else str(tp).replace("typing.", "")


@functools.lru_cache(maxsize=1024)
def members(tp: Any) -> tuple[Member, ...] | None:
    """Returns the fields of a dataclass, TypedDict or NamedTuple, or None for other types."""
    is_dataclass, is_named = dataclasses.is_dataclass(tp), hasattr(tp, "_field_defaults")
    if not (is_dataclass or is_named or hasattr(tp, "__required_keys__")):
        return None
    hints, absent = get_type_hints(tp, include_extras=True), dataclasses.MISSING
    if is_dataclass:
        return tuple(Member(field.name, hints[field.name], field.default is absent and field.default_factory is absent,
                            None if field.default is absent else field.default)
                     for field in dataclasses.fields(tp) if field.init)
    optional = getattr(tp, "_field_defaults" if is_named else "__optional_keys__")
    return tuple(Member(name, hint, qualifier(hint) == "Required" or (name not in optional and qualifier(hint) != "NotRequired"))
                 for name, hint in hints.items())


def object_schema(fields: abc.Iterable[Member], codecs: abc.Iterable[Codec]) -> Schema:
    """Returns the schema of an object without further properties."""
    properties = {}
    for field, inner in zip(fields, codecs):
        default = field.default.value if isinstance(field.default, Enum) else field.default
        properties[field.name] = {**inner.schema, **({"default": default} if isinstance(default, (str, int, float)) else {})}
    required = _some(required=[field.name for field in fields if field.required])
    return {"type": "object", "properties": properties, **required, "additionalProperties": False}


def json_schema(schema: Any) -> Schema:
    """Returns a copy of a schema whose definitions are at its root, where references find them."""
    definitions: Schema = {}

    def lift(part: Any) -> Any:
        if not is_a(dict, part):
            return [lift(item) for item in part] if is_a(list, part) else part
        definitions.update(lift(part["$defs"]) if "$defs" in part else {})
        return {key: lift(item) for key, item in part.items() if key != "$defs"}

    return {**lift(schema), **_some(**{"$defs": definitions})}


def constrain(schema: Schema, metadata: abc.Iterable[Any]) -> Schema:
    """Adds the descriptions and constraints of `Annotated` to a schema."""
    for meta in metadata:
        schema = constrain(schema, getattr(meta, "metadata", None) or ())
        low, high = LENGTHS.get(schema.get("type", ""), ("minLength", "maxLength"))
        for name, keyword in {**KEYWORDS, "min_length": low, "max_length": high}.items():
            value = meta if isinstance(meta, str) and name == "description" else getattr(meta, name, None)
            if isinstance(value := getattr(value, "pattern", value), (str, int, float)):
                schema = {**schema, keyword: value}
    return schema


def _some(**keywords: Any) -> Schema:
    return {keyword: value for keyword, value in keywords.items() if value}


def _choices(values: abc.Sequence[Any]) -> Schema:
    kinds = {BASIC.get(type(value)) for value in values}
    return {**_some(type=kinds.pop() if len(kinds) == 1 else None), "enum": [*values]}


def to_json(value: Any) -> str:
    """Returns a value as JSON. Raises a TypeError or ValueError if it is not JSON."""
    text = json.dumps(value, default=_encode, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _encode(value: Any) -> Any:
    if is_a((set, frozenset), value):
        return [*value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (Enum, UUID, PurePath, Decimal)):
        return value.value if isinstance(value, Enum) else str(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    raise TypeError(f"a value of the type `{type(value).__name__}` is not JSON; return text, numbers, lists or dataclasses")


def expect(tp: Any, value: Any, path: str, fits: bool) -> Any:
    """Returns the value, or raises `Mismatch` if it does not fit."""
    if not fits:
        shown = json.dumps(value, ensure_ascii=False)
        raise Mismatch(f"`{path}` must be `{name_of(tp)}`, not {shown if len(shown) < 60 else shown[:60] + '…'}")
    return value


def is_a(kinds: Any, value: Any) -> bool:
    """Returns `isinstance(value, kinds)`. Type checkers keep the value as it is."""
    return isinstance(value, kinds)


def _read_any(value: Any, path: str = "") -> Any:
    return value


def _read_choice(tp: Any, values: tuple[Any, ...], make: Callable[[Any], Any], value: Any, path: str) -> Any:
    return make(expect(tp, value, path, any(type(arm) is type(value) and arm == value for arm in values)))


def _read_list(tp: Any, make: Callable[[list[Any]], Any], read: Read, value: Any, path: str) -> Any:
    expect(tp, value, path, isinstance(value, list))
    return make([read(item, f"{path}[{n}]") for n, item in enumerate(value)])


def _read_dict(tp: Any, read_key: Read, read: Read, value: Any, path: str) -> Any:
    expect(tp, value, path, isinstance(value, dict))
    return {read_key(key, path): read(item, f"{path}.{key}") for key, item in value.items()}


def _read_basic(tp: Any, value: Any, path: str) -> Any:
    return float(value) if tp is float and type(value) is int else expect(tp, value, path, type(value) is tp)


def _read_text(tp: Any, value: Any, path: str) -> Any:
    expect(tp, value, path, isinstance(value, str))
    try:
        return TEXT[tp][1](value)
    except (ValueError, ArithmeticError):
        return expect(tp, value, path, False)


def _read_model(tp: Any, value: Any, path: str) -> Any:
    try:
        return tp.model_validate(value)
    except ValueError as error:
        raise Mismatch(f"`{path}`: {error}") from None


def _read_int_key(key: str, path: str) -> int:
    return int(expect(int, key, path, re.fullmatch(r"-?\d+", key) is not None))


def _read_union(tp: Any, args: tuple[Any, ...], codecs: list[Codec], value: Any, path: str) -> Any:
    errors: list[str] = []
    for _, arm in sorted(zip(args, codecs), key=lambda arm: type(value) is not arm[0]):  # 1 is an int in `float | int`
        try:
            return arm.read(value, path)
        except Mismatch as error:
            errors.append(str(error))
    deeper = [error for error in errors if not error.startswith(f"`{path}` must be")]
    raise Mismatch(deeper[0]) if deeper else Mismatch(f"`{path}` must be `{name_of(tp)}`")


def _read_object(tp: Any, fields: tuple[Member, ...], codecs: list[Codec], value: Any, path: str) -> Any:
    expect(tp, value, path, isinstance(value, dict))
    found = {}
    for field, inner in zip(fields, codecs):
        if field.name in value:
            found[field.name] = inner.read(value[field.name], f"{path}.{field.name}")
        elif field.required and NULL not in inner.schema.get("anyOf", ()):
            raise Mismatch(f"`{path}.{field.name}` is missing")
        elif field.required:
            found[field.name] = None
    return tp(**found)


def _tuple(tp: Any, codecs: list[Codec], required: int, make: Callable[[list[Any]], Any]) -> Codec:
    def read(value: Any, path: str) -> Any:
        expect(tp, value, path, is_a(list, value) and required <= len(value) <= len(codecs))
        return make([codec.read(item, f"{path}[{n}]") for n, (codec, item) in enumerate(zip(codecs, value))])

    items = [codec.schema for codec in codecs]
    return Codec({"type": "array", "prefixItems": items, "minItems": required, "maxItems": len(codecs)}, read)


def return_type(fn: Any) -> Any:
    """Returns the type of the values of a function, or Any without an annotation."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    fn = fn if inspect.isroutine(fn) else fn.__call__
    tp = getattr(fn, "__annotations__", {}).get("return", Any)
    tp = get_type_hints(fn, include_extras=True)["return"] if isinstance(tp, str) else tp
    return get_args(tp)[-1] if get_origin(tp) in (abc.Awaitable, abc.Coroutine) else tp


def form(tp: Any, key: str) -> tuple[dict[str, Schema], list[str], Callable[[Any], Any]]:
    """Returns the fields of a form, the required fields, and the function that reads its content."""
    inner, single = codec(tp), ""
    fields: dict[str, Schema] = {}
    schema = inner.schema
    if "properties" not in schema:
        single = "yes" if tp is bool else "choice" if "enum" in schema else "value"
        schema = object_schema([Member(single, tp, True)], [inner])
    required = list(schema.get("required", ()))
    for name, field in schema["properties"].items():
        arms = [arm for arm in field.get("anyOf", ()) if arm != NULL]
        if len(arms) == 1:  # an optional field
            required = [other for other in required if other != name]
            field = {**arms[0], **field}
        fields[name] = {keyword: value for keyword, value in field.items() if keyword not in ("anyOf", "uniqueItems")}
        items = field.get("items", {})
        if field.get("type") not in ("string", "integer", "number", "boolean") and not ("enum" in items and items.get("type") == "string"):
            raise TypeError(f"input request `{key}`: the field `{name}` must be text, a number, yes or no, or choices of text")
    return fields, required, lambda content: inner.read(content.get(single) if single else content, "response")
