// The shared transcripts, over real pipes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { check, replay, transcripts } from "./support.mjs";

const tools = fileURLToPath(new URL("transcript-tools.mjs", import.meta.url));

for (const lines of transcripts()) test(`transcript ${lines[0].transcript}`, () => replay(lines, tools));

test("other lines do not match a transcript", () => {
  const expected = { call: 1, done: "build", value: { a: 1 }, kind: "$OPTIONAL", text: "$ANY" };
  const line = { call: 1, done: "build", value: { a: 1 }, text: "" };
  check(expected, line);
  for (const change of [{ done: "push" }, { value: { a: 2 } }, { value: { a: 1, b: 2 } }, { more: 1 }, { text: undefined, value: null }]) {
    assert.throws(() => check(expected, { ...line, ...change }));
  }
});
