// The code of the tutorial, the guide and the README.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const PACKAGE = new URL("../", import.meta.url);
const DOCS = new URL("../../docs/", PACKAGE);

const blocks = (file) => [...readFileSync(file, "utf8").matchAll(/```js\n(.*?)```/gs)].map(([, block]) => block);

/** Runs Node in a folder with these files, in which the package is installed. */
function run(files, args) {
  const folder = mkdtempSync(join(tmpdir(), "outlive-test-"));
  try {
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(fileURLToPath(PACKAGE), join(folder, "node_modules", "outlive"));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const { NODE_TEST_CONTEXT, OUTLIVE_WORKER, ...env } = process.env;
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, env, encoding: "utf8" });
    assert.equal(status, 0, stdout + stderr);
    return stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("tutorial passes its own tests", () => {
  const [tools, mirror, tests] = blocks(new URL("tutorial-typescript.md", DOCS));
  const files = { "tools.mjs": tools.replace("app.run();", `${mirror}\napp.run();`), "tools.test.mjs": tests };
  assert.match(run(files, ["--test", "tools.test.mjs"]), /pass 3\b/);
});

test("guide story passes its own test", () => {
  const [tools, tests] = blocks(new URL("workers.md", DOCS));
  assert.match(run({ "tools.mjs": tools, "tools.test.mjs": tests }, ["--test", "tools.test.mjs"]), /pass 1\b/);
});

test("README declares its tool", () => {
  const [tools] = blocks(new URL("README.md", PACKAGE));
  assert.equal(run({ "tools.mjs": tools, "main.mjs": 'import { deploy } from "./tools.mjs"; console.log(deploy.name);' }, ["main.mjs"]), "deploy\n");
});
