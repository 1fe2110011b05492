// Types, schemas, forms and declarations.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Outlive, t, test as play } from "../outlive.mjs";

const text = { type: "string" };
const number = { type: "integer" };
const image = { name: t.string(), tag: t.integer({ default: 1 }), parts: t.array(t.string()).optional(), note: t.string().nullable() };
// Type, schema, values that fit, values that do not fit with their errors.
const types = {
  string: [t.string({ minLength: 1 }), { type: "string", minLength: 1 }, ["a"], [[1, "`v` must be a string, not 1"]]],
  number: [t.number(), { type: "number" }, [1.5], [["1", '`v` must be a number, not "1"']]],
  integer: [t.integer({ minimum: 0 }), { type: "integer", minimum: 0 }, [3], [[1.5, "`v` must be an integer, not 1.5"]]],
  boolean: [t.boolean(), { type: "boolean" }, [true], [[0, "`v` must be a boolean, not 0"]]],
  any: [t.any(), {}, [null, { a: [1] }], []],
  enum: [t.enum(["a", "b"]), { type: "string", enum: ["a", "b"] }, ["b"], [["c", '`v` must be one of a, b, not "c"']]],
  array: [t.array(t.integer()), { type: "array", items: number }, [[1, 2]], [[[1, "a"], '`v[1]` must be an integer, not "a"'], [{}, "`v` must be an array, not {}"]]],
  record: [t.record(t.integer()), { type: "object", additionalProperties: number }, [{ a: 1 }], [[{ a: "x" }, '`v.a` must be an integer, not "x"'], [[], "`v` must be an object, not []"]]],
  nullable: [t.string().nullable(), { anyOf: [text, { type: "null" }] }, ["a", null], [[1, "`v` must be a string, not 1"]]],
  described: [t.string().describe("D"), { type: "string", description: "D" }, ["a"], []],
  object: [t.object(image), {
    type: "object", required: ["name", "note"], additionalProperties: false,
    properties: { name: text, tag: { type: "integer", default: 1 }, parts: { type: "array", items: text }, note: { anyOf: [text, { type: "null" }] } },
  }, [{ name: "a", tag: 2, parts: [], note: null }], [[{ tag: 1, note: null }, "`v.name` is missing"], [null, "`v` must be an object, not null"]]],
};

for (const [name, [type, schema, fitting, wrong]] of Object.entries(types)) {
  test(`${name} has its schema and reads its values`, async () => {
    assert.deepEqual(type.schema, schema);
    for (const value of fitting) assert.deepEqual(await type.read(value, "v"), value);
    for (const [value, message] of wrong) await assert.rejects(async () => type.read(value, "v"), { message });
  });
}

test("defaults are filled in and unknown members are left out", async () => {
  assert.deepEqual(await t.object(image).read({ name: "a", note: "n", other: 1 }, "v"), { name: "a", tag: 1, note: "n" });
  const list = t.object({ list: t.array(t.string(), { default: ["a"] }) });
  const first = await list.read({}, "v");
  first.list.push("b");
  assert.deepEqual(await list.read({}, "v"), { list: ["a"] }, "each value has its own default");
});

/** A Standard Schema like those of zod 4.2. */
const standard = (schema, validate) => ({ "~standard": { version: 1, vendor: "test", validate, jsonSchema: schema && { input: () => ({ $schema: "x", ...schema }) } } });
const even = standard({ type: "integer", multipleOf: 2 }, (value) => (Number.isInteger(value) && value % 2 === 0 ? { value: value * 10 } : { issues: [{ message: "must be even", path: ["n"] }] }));
const asynchronous = standard({ type: "string" }, async (value) => ({ value: `${value}!` }));

test("standard schema is read, also asynchronously and inside of other types", async () => {
  const type = t.object({ even, list: t.array(asynchronous), map: t.record(even) });
  assert.deepEqual(type.schema.required, ["even", "list", "map"]);
  assert.deepEqual(await type.read({ even: 2, list: ["a"], map: { x: 4 } }, "v"), { even: 20, list: ["a!"], map: { x: 40 } });
  await assert.rejects(async () => type.read({ even: 1, list: [], map: {} }, "v"), { message: "`v.even.n`: must be even" });
});

test("entry has the schemas and options of a tool", () => {
  const app = new Outlive("a");
  const tool = app.durable("deploy", {
    title: "T", description: "D", task: "auto", taskAfter: { seconds: 5 }, timeout: 60_000, readOnly: false, openWorld: true, scopes: ["a"], onCrash: "rerun",
    input: { n: even, s: t.string() }, output: { yes: t.boolean() },
  }, async () => {});
  const { code, ...entry } = JSON.parse(JSON.stringify(tool.entry));
  assert.match(code, /^[0-9a-f]{6}$/);
  assert.deepEqual(entry, {
    name: "deploy", title: "T", description: "D", task: "auto", read_only: false, open_world: true, scopes: ["a"], on_crash: "rerun",
    task_after_ms: 5000, timeout_ms: 60_000, durable: true,
    inputSchema: { type: "object", properties: { n: { type: "integer", multipleOf: 2 }, s: text }, required: ["n", "s"], additionalProperties: false },
    outputSchema: { type: "object", properties: { yes: { type: "boolean" } }, required: ["yes"], additionalProperties: false },
  });
  const json = app.tool("json", { input: { type: "object", properties: { a: text } } }, async () => {});
  assert.deepEqual(json.entry.inputSchema, { type: "object", properties: { a: text } });
  assert.deepEqual(app.tool("whole", { input: standard({ type: "object" }, (value) => ({ value })) }, async () => {}).entry.inputSchema, { type: "object" });
});

test("wrong declaration is an error that names the tool", () => {
  const app = new Outlive("a");
  const declare = (options, name = "deploy") => () => app.tool(name, options, async () => {});
  assert.throws(declare({ input: 3 }), { message: "tool `deploy`: use a type of `t`, a Standard Schema or a JSON Schema" });
  assert.throws(declare({ taks: "auto" }), { message: "tool `deploy`: unknown option `taks`" });
  assert.throws(declare({ input: standard(undefined, () => ({ issues: [] })) }), { message: "tool `deploy`: the schema has no JSON Schema; use zod 4.2 or newer, or `t`" });
  declare({})();
  assert.throws(declare({}), { message: "the tool `deploy` is declared twice; choose another name" });
});

async function elicit(form, content) {
  const tool = new Outlive("a").durable("tool", {}, async (ctx) => ctx.elicit("k", "?", form));
  return (await play(tool).accept("k", content).run()).structured;
}

test("form of a single value has one field", async () => {
  assert.equal(await elicit(t.boolean(), { yes: true }), true);
  assert.equal(await elicit(t.enum(["a"]), { choice: "a" }), "a");
  assert.equal(await elicit(t.integer(), { value: 3 }), 3);
  assert.deepEqual(await elicit({ a: t.string().nullable(), b: t.integer().optional() }, { a: null }), { a: null });
});

test("form with a nested field is an error that names it", async () => {
  const tool = new Outlive("a").durable("tool", {}, async (ctx) => ctx.elicit("k", "?", { image: t.object(image) }));
  assert.equal((await play(tool).run()).text, "TypeError: input request `k`: the field `image` must be text, a number, yes or no, or choices of text");
});
