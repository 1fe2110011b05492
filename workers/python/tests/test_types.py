"""Schemas, values and forms from type hints."""

import dataclasses
import json
import re
import unittest
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict, Union
from uuid import UUID

import support  # noqa: F401
from outlive import Context, Durable, Field, Outlive, blocking
from outlive._schema import Mismatch, codec, form, json_schema, return_type, to_json


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: int
    y: int = 0


class Movie(TypedDict, total=False):
    title: str
    year: int


@dataclass
class Image:
    name: str
    tag: int = 1
    parts: list[str] = field(default_factory=list)
    note: Optional[str] = None


@dataclass
class Node:
    next: "Node | None"


class Model:
    """A type with the two functions of pydantic."""

    def __init__(self, size):
        self.size = size

    @classmethod
    def model_json_schema(cls):
        return {"type": "object", "properties": {"size": {"$ref": "#/$defs/Size"}}, "$defs": {"Size": {"type": "integer"}}}

    @classmethod
    def model_validate(cls, value):
        if not isinstance(value.get("size"), int):
            raise ValueError("size must be an integer")
        return cls(value["size"])

    def model_dump(self, mode):
        return {"size": self.size}

    def __eq__(self, other):
        return self.size == other.size


@dataclass
class Ge:
    ge: int


@dataclass
class FieldInfo:
    metadata: list
    description: str


UserId = NewType("UserId", str)
NUMBER = {"type": "integer"}
TEXT = {"type": "string"}
# Type, schema, Python value, JSON value.
TYPES = [
    (str, TEXT, "ä", "ä"),
    (int, NUMBER, 3, 3),
    (float, {"type": "number"}, 1.5, 1.5),
    (bool, {"type": "boolean"}, True, True),
    (None, {"type": "null"}, None, None),
    (Any, {}, {"a": [1]}, {"a": [1]}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "b", "b"),
    (Literal["a", 1], {"enum": ["a", 1]}, 1, 1),
    (Color, {"type": "string", "enum": ["red", "blue"]}, Color.BLUE, "blue"),
    (Level, {"type": "integer", "enum": [1, 2]}, Level.HIGH, 2),
    (list, {"type": "array"}, [1, "a"], [1, "a"]),
    (list[int], {"type": "array", "items": NUMBER}, [1, 2], [1, 2]),
    (Sequence[int], {"type": "array", "items": NUMBER}, [1], [1]),
    (set[int], {"type": "array", "items": NUMBER, "uniqueItems": True}, {1}, [1]),
    (frozenset[Color], {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}, "uniqueItems": True}, frozenset([Color.RED]), ["red"]),
    (tuple[int, str], {"type": "array", "prefixItems": [NUMBER, TEXT], "minItems": 2, "maxItems": 2}, (1, "a"), [1, "a"]),
    (tuple[int, ...], {"type": "array", "items": NUMBER}, (1, 2, 3), [1, 2, 3]),
    (tuple, {"type": "array"}, (1, "a"), [1, "a"]),
    (dict, {"type": "object"}, {"a": 1}, {"a": 1}),
    (dict[str, int], {"type": "object", "additionalProperties": NUMBER}, {"a": 1}, {"a": 1}),
    (dict[int, date], {"type": "object", "additionalProperties": {"type": "string", "format": "date"}}, {1: date(2026, 1, 2)}, {"1": "2026-01-02"}),
    (Mapping[str, Any], {"type": "object"}, {"a": None}, {"a": None}),
    (Optional[int], {"anyOf": [NUMBER, {"type": "null"}]}, None, None),
    (int | str, {"anyOf": [NUMBER, TEXT]}, "a", "a"),
    (Union[float, int], {"anyOf": [{"type": "number"}, NUMBER]}, 2, 2),
    (Image, {"type": "object", "properties": {"name": TEXT, "tag": {"type": "integer", "default": 1}, "parts": {"type": "array", "items": TEXT},
             "note": {"anyOf": [TEXT, {"type": "null"}]}}, "required": ["name"], "additionalProperties": False},
     Image("shop", 2, ["a"]), {"name": "shop", "tag": 2, "parts": ["a"], "note": None}),
    (Movie, {"type": "object", "properties": {"title": TEXT, "year": NUMBER}, "additionalProperties": False}, {"title": "M"}, {"title": "M"}),
    (Point, {"type": "array", "prefixItems": [NUMBER, NUMBER], "minItems": 1, "maxItems": 2}, Point(1, 2), [1, 2]),
    (datetime, {"type": "string", "format": "date-time"}, datetime(2026, 1, 2, 3, 4, tzinfo=timezone.utc), "2026-01-02T03:04:00+00:00"),
    (date, {"type": "string", "format": "date"}, date(2026, 1, 2), "2026-01-02"),
    (time, {"type": "string", "format": "time"}, time(3, 4), "03:04:00"),
    (UUID, {"type": "string", "format": "uuid"}, UUID(int=1), str(UUID(int=1))),
    (Path, TEXT, Path("a/b"), "a/b"),
    (Decimal, TEXT, Decimal("1.10"), "1.10"),
    (Model, {"type": "object", "properties": {"size": {"$ref": "#/$defs/Size"}}, "$defs": {"Size": NUMBER}}, Model(3), {"size": 3}),
    (UserId, TEXT, "u1", "u1"),
    (Annotated[int, "How many.", Field(ge=1, le=9)], {"type": "integer", "description": "How many.", "minimum": 1, "maximum": 9}, 3, 3),
    (Annotated[str, Field(min_length=1, max_length=5, pattern="^a", title="T", format="email")],
     {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^a", "title": "T", "format": "email"}, "ab", "ab"),
    (Annotated[list[int], Field(min_length=1, description="D")], {"type": "array", "items": NUMBER, "minItems": 1, "description": "D"}, [1], [1]),
    (Annotated[int, FieldInfo([Ge(5)], "third party")], {"type": "integer", "minimum": 5, "description": "third party"}, 7, 7),
    (Annotated[int, Field(gt=0, lt=9, multiple_of=2)], {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9, "multipleOf": 2}, 2, 2),
]
WRONG = [
    (str, 1), (int, True), (int, 1.5), (int, "1"), (float, "1"), (bool, 1), (None, 0), (Literal["a"], "b"), (Literal[1], True), (Color, "green"),
    (list[int], [1, "a"]), (list[int], {}), (tuple[int, str], [1]), (dict[str, int], []), (dict[int, int], {"a": 1}), (int | None, "a"),
    (Image, {"tag": 1}), (Image, []), (Point, []), (Point, [1, 2, 3]), (datetime, "soon"), (date, 3), (UUID, "x"), (Decimal, "x"), (Model, {}),
]


class Types(unittest.TestCase):
    def test_each_type_has_its_schema(self):
        for tp, schema, _, _ in TYPES:
            with self.subTest(tp):
                self.assertEqual(json_schema(codec(tp).schema), schema)

    def test_each_value_is_read_as_it_was_written(self):
        for tp, _, value, encoded in TYPES:
            with self.subTest(tp):
                self.assertEqual(json.loads(to_json(value)), encoded)
                found = codec(tp).read(encoded, "value")
                self.assertEqual(found, value)
                self.assertIs(type(found), type(value))

    def test_value_of_another_type_is_a_mismatch_with_its_path(self):
        for tp, value in WRONG:
            with self.subTest(tp=tp, value=value), self.assertRaisesRegex(Mismatch, "^`value"):
                codec(tp).read(value, "value")
        with self.assertRaisesRegex(Mismatch, r"^`image\.parts\[1\]` must be `str`, not 3$"):
            codec(Image).read({"name": "a", "parts": ["b", 3]}, "image")
        with self.assertRaisesRegex(Mismatch, r"^`image\.name` is missing$"):
            codec(Image | None).read({}, "image")

    def test_integer_is_a_float_where_a_float_is_expected(self):
        self.assertIs(type(codec(float).read(2, "value")), float)
        self.assertIs(type(codec(Union[float, int]).read(2, "value")), int)

    def test_time_in_utc_is_read_with_its_short_form(self):
        self.assertEqual(codec(datetime).read("2026-01-02T03:04:00Z", "value"), datetime(2026, 1, 2, 3, 4, tzinfo=timezone.utc))

    def test_unknown_members_are_ignored_and_optional_ones_may_be_absent(self):
        @dataclass
        class New:
            name: str
            size: Optional[int]

        self.assertEqual(codec(New).read({"name": "a", "old": 1}, "value"), New("a", None))

    def test_type_without_json_form_is_an_error_that_names_it(self):
        for tp in (bytes, object(), complex, re.Pattern, type("Own", (), {})):
            with self.subTest(tp), self.assertRaisesRegex(TypeError, "has no JSON form"):
                codec(tp)
        with self.assertRaisesRegex(TypeError, "`Node` refers to itself"):
            codec(Node)

    def test_value_without_json_form_is_an_error_that_names_its_type(self):
        with self.assertRaisesRegex(TypeError, "`bytes` is not JSON"):
            to_json({"a": b""})
        with self.assertRaisesRegex(ValueError, "JSON compliant"):
            to_json(float("nan"))
        self.assertEqual(to_json("a\ud800"), '"a?"')

    def test_annotated_with_unhashable_metadata_is_read(self):
        self.assertEqual(codec(Annotated[int, {"other": []}]).schema, NUMBER)

    def test_return_type_is_found_behind_wrappers(self):
        import functools

        class Callable:
            async def __call__(self) -> "int":
                return 1

        async def one() -> int:
            return 1

        self.assertIs(return_type(one), int)
        self.assertIs(return_type(functools.partial(one)), int)
        self.assertIs(return_type(Callable()), int)
        self.assertIs(return_type(lambda: 1), Any)
        self.assertIs(return_type(dict), Any)


class Forms(unittest.TestCase):
    def test_single_value_is_a_form_with_one_field(self):
        fields, required, read = form(bool, "k")
        self.assertEqual((fields, required, read({"yes": True})), ({"yes": {"type": "boolean"}}, ["yes"], True))
        fields, _, read = form(Literal["s", "l"], "k")
        self.assertEqual((fields, read({"choice": "l"})), ({"choice": {"type": "string", "enum": ["s", "l"]}}, "l"))
        self.assertIs(form(Color, "k")[2]({"choice": "red"}), Color.RED)
        self.assertEqual(form(int, "k")[2]({"value": 3}), 3)

    def test_optional_fields_are_not_required(self):
        @dataclass
        class Order:
            name: str
            when: Optional[date]
            toppings: set[Literal["a", "b"]]
            count: Annotated[Optional[int], "How many."] = None

        fields, required, read = form(Order, "k")
        self.assertEqual(fields["when"], {"type": "string", "format": "date"})
        self.assertEqual(fields["toppings"], {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}})
        self.assertEqual(fields["count"], {"type": "integer", "description": "How many."})
        self.assertEqual(required, ["name", "toppings"])
        self.assertEqual(read({"name": "x", "toppings": ["a"]}), Order("x", None, {"a"}))

    def test_nested_field_is_an_error_that_names_it(self):
        nested = dataclasses.make_dataclass("Nested", [("name", str), ("image", Image)])
        with self.assertRaisesRegex(TypeError, "input request `k`: the field `image` must be text"):
            form(nested, "k")
        with self.assertRaisesRegex(TypeError, "the field `parts`"):
            form(Image, "k")


class Declarations(unittest.TestCase):
    def setUp(self):
        self.app = Outlive("test")

    def test_entry_has_description_parameters_and_output(self):
        @self.app.tool(title="Deploys", task="auto", task_after=5, timeout=60, read_only=False, scopes=("a",), on_crash="rerun")
        async def deploy(ctx: Durable, repo: str, count: Annotated[int, Field(ge=1)] = 2, *, note: Optional[str] = None) -> Image:
            """Builds a repository
            and rolls it out.

            More text.

            Args:
                repo: Which repository.
                count (int): How many,
                    at most.

            Returns:
                repo: not a parameter.
            """
            return Image(repo)

        entry = deploy.entry()
        self.assertEqual(entry["description"], "Builds a repository\nand rolls it out.\n\nMore text.")
        self.assertEqual(entry["inputSchema"], {
            "type": "object", "additionalProperties": False, "required": ["repo"],
            "properties": {"repo": {"type": "string", "description": "Which repository."},
                           "count": {"type": "integer", "minimum": 1, "description": "How many, at most.", "default": 2},
                           "note": {"anyOf": [TEXT, {"type": "null"}]}}})
        self.assertEqual(entry["outputSchema"], codec(Image).schema)
        self.assertEqual({name: entry[name] for name in ("title", "task", "task_after_ms", "timeout_ms", "read_only", "scopes", "on_crash", "durable")},
                         {"title": "Deploys", "task": "auto", "task_after_ms": 5000, "timeout_ms": 60000, "read_only": False, "scopes": ["a"],
                          "on_crash": "rerun", "durable": True})
        self.assertRegex(entry["code"], "^[0-9a-f]{6}$")

    def test_code_changes_with_the_source(self):
        @self.app.tool
        def one() -> int:
            return 1

        @self.app.tool
        def two() -> int:
            return 2

        self.assertNotEqual(one.entry()["code"], two.entry()["code"])
        self.assertEqual(one.entry()["code"], one.entry()["code"])
        self.assertNotIn("outputSchema", one.entry())

    def test_tool_is_still_a_function(self):
        @self.app.tool
        def add(a: int, b: int) -> int:
            return a + b

        self.assertEqual((add(1, b=2), add.__name__, add.name), (3, "add", "add"))

    def test_wrong_pair_of_function_and_context_is_an_error(self):
        with self.assertRaisesRegex(TypeError, "tool `one`: the parameter `ctx` of a `def` tool must be `outlive.blocking.Durable` or"):
            @self.app.tool
            def one(ctx: Durable) -> None: ...
        with self.assertRaisesRegex(TypeError, "of an `async def` tool must be `outlive.Durable` or `outlive.Context`"):
            @self.app.tool
            async def two(ctx: blocking.Context) -> None: ...
        with self.assertRaisesRegex(TypeError, "`other`"):
            @self.app.tool
            async def three(ctx: Durable, other: Context) -> None: ...

        @self.app.tool
        async def four(ctx: Durable) -> None: ...
        with self.assertRaisesRegex(TypeError, "of a cleanup must be `outlive.Cleanup`"):
            @four.cleanup
            async def tidy(ctx: Durable) -> None: ...

    def test_parameter_without_schema_is_an_error_that_names_it(self):
        with self.assertRaisesRegex(TypeError, "tool `one`: the parameter `data`: the type `bytes` has no JSON form"):
            @self.app.tool
            def one(data: bytes) -> None: ...
        with self.assertRaisesRegex(TypeError, "tool `two`: the parameter `rest`"):
            @self.app.tool
            def two(*rest: int) -> None: ...

    def test_second_tool_of_a_name_is_an_error(self):
        self.app.tool(name="one")(lambda: 1)
        with self.assertRaisesRegex(ValueError, "the tool `one` is declared twice"):
            self.app.tool(name="one")(lambda: 2)


if __name__ == "__main__":
    unittest.main()
