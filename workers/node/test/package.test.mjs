// The package: its imports and its size.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { test } from "node:test";

const source = readFileSync(new URL("../outlive.mjs", import.meta.url), "utf8");

test("imports are of the standard library only", () => {
  const imports = [...source.matchAll(/(?:from|import\(|require\()\s*"([^"]+)"/g)].map(([, name]) => name);
  assert(imports.length > 0);
  assert.deepEqual(imports.filter((name) => !name.startsWith("node:") || !builtinModules.includes(name.slice(5))), []);
  assert.deepEqual(JSON.parse(readFileSync(new URL("../package.json", import.meta.url))).dependencies, undefined);
});

test("package has at most 900 lines of code", () => {
  const code = source.replace(/\/\*\*[^]*?\*\//g, "").split("\n").filter((line) => line.trim() && !line.trim().startsWith("//"));
  assert(code.length <= 900, `${code.length} lines`);
  assert.deepEqual(source.split("\n").filter((line) => line.length > 140), []);
});

test("version is that of the package file", () => {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url)));
  assert(source.includes(`const VERSION = "${version}";`));
});
