// Errors, drops and limits of runs, over real pipes.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { test } from "node:test";

import { talking } from "./support.mjs";

const durable = (body) => `app.durable("tool", {}, async (ctx, args) => {${body}});`;
const last = (program, options) => talking(program, async (talk) => (talk.call("tool"), talk.last()), options);
const lines = (program, count) => talking(program, async (talk) => (talk.call("tool"), talk.lines(count)));

test("tool error has only its text", async () => {
  assert.deepEqual(await last(durable('throw new ToolError("nothing found")'), { dev: true }), { call: 1, error: "nothing found", kind: "ToolError" });
});

test("other error has its kind, and in development its place", async () => {
  const program = `function push() {\n  throw new RangeError("disk full");\n}\n${durable("await push()")}`;
  assert.deepEqual(await last(program), { call: 1, error: "disk full", kind: "RangeError" });
  assert.match((await last(program, { dev: true })).error, /^disk full \(tools\.mjs:\d+ in push\)$/);
});

test("thrown value that is not an error is an error", async () => {
  assert.deepEqual(await last(durable('throw "bye"')), { call: 1, error: "bye", kind: "Error" });
});

test("error has a traceback with a limit", async () => {
  await talking(durable('throw new Error("x".repeat(100_000))'), async (talk) => {
    talk.call("tool");
    const line = await talk.receive();
    assert.deepEqual([line.error.length, line.traceback.length], [16384, 16384]);
  });
});

test("rejection is an error of its class", async () => {
  await talking(durable(`
    try {
      await ctx.elicit("go", "Go?", t.boolean());
    } catch (error) {
      if (args.rethrow) throw error;
      return [error.name, error.key, error.kind, error.message];
    }`), async (talk) => {
    const rejected = async (call, kind, message, args) => {
      talk.call("tool", call, args);
      await talk.receive();
      talk.send({ call, rejected: "go", kind, message });
      return talk.last();
    };
    assert.deepEqual((await rejected(1, "timed_out", "too late")).return, ["TimedOut", "go", "timed_out", "too late"]);
    assert.deepEqual((await rejected(2, "cancelled", "c")).return, ["TaskCancelled", "go", "cancelled", "c"]);
    assert.deepEqual((await rejected(3, "constructor", "new")).return, ["DurableError", "go", "constructor", "new"]);
  });
  await talking(durable('await ctx.elicit("go", "Go?", t.boolean());'), async (talk) => {
    talk.call("tool");
    await talk.receive();
    talk.send({ call: 1, rejected: "go", kind: "missing_capability", message: "no forms" });
    assert.deepEqual(await talk.last(), { call: 1, error: "no forms", kind: "ToolError", rejected: "go" });
  });
});

test("response without acceptance is an error of its class", async () => {
  await talking(durable('try { await ctx.elicit("go", "Go?", t.boolean()); } catch (error) { return [error.name, error.message]; }'), async (talk) => {
    for (const [call, action, name, text] of [[1, "decline", "Declined", "declined"], [2, "cancel", "Cancelled", "cancelled"]]) {
      talk.call("tool", call);
      await talk.receive();
      talk.send({ call, response: "go", action });
      assert.deepEqual((await talk.last()).return, [name, `the user ${text} the input request \`go\``]);
    }
  });
});

test("argument of another type is an error that names it", async () => {
  await talking('app.tool("tool", { input: { days: t.array(t.integer()) } }, async () => 1);', async (talk) => {
    talk.call("tool", 1, { days: [1, "a"] });
    assert.equal((await talk.last()).error, '`arguments.days[1]` must be an integer, not "a"');
  });
});

test("value without JSON form is an error", async () => {
  for (const [value, text] of [["new Map()", "`Map` is not JSON"], ["{ a: NaN }", "`NaN` is not JSON"], ["() => 1", "`function` is not JSON"], ["10n", "`bigint` is not JSON"]]) {
    assert.match((await last(durable(`return ${value}`))).error, new RegExp(text));
    assert.match((await lines(durable(`await ctx.step("a", () => (${value}))`), 2))[1].error, new RegExp(text));
  }
  assert.match((await last(durable('return "x".repeat(5 << 20)'))).error, /above the limit of 4186112; use emit/);
});

test("first run gets the value as it was recorded", async () => {
  const program = durable(`
    const plain = await ctx.step("plain", () => ({ date: new Date(0), nothing: undefined, list: [undefined] }));
    const typed = await ctx.step("typed", async () => ({ n: 1, other: 2 }), { type: { n: t.integer() } });
    return [plain, typed, await ctx.get("typed"), await ctx.get("nothing")];`);
  assert.deepEqual((await lines(program, 5)).at(-1).return, [{ date: "1970-01-01T00:00:00.000Z", list: [null] }, { n: 1 }, { n: 1, other: 2 }, null]);
});

test("result of another type fails the step without a retry", async () => {
  const found = await lines(durable('await ctx.step("a", () => 3, { type: t.string(), retry: 9 })'), 3);
  assert.deepEqual(found[1], { call: 1, failed: "a", error: "`a` must be a string, not 3", kind: "TypeError" });
});

test("value above the limit fails the step and frees its key", async () => {
  const found = await lines(durable('try { await ctx.step("a", () => "x".repeat(4 << 20)); } catch { return ctx.step("a", () => "small"); }'), 5);
  assert.equal(found[1].kind, "TooLarge");
  assert.equal(found.at(-1).return, "small");
});

test("key is used once in a run", async () => {
  const [, , { error }] = await lines(durable('await ctx.step(["a", "b"], () => 1); await ctx.scope("a").sleep("b", 1);'), 3);
  assert.equal(error, 'the key `a/b` is used twice in one run; add a part, such as ["push", region], or use a scope');
  for (const part of ["{}", "null", "[1]", "Symbol.iterator.description && undefined"]) {
    assert.match((await last(durable(`await ctx.step(["a", ${part}], () => 1)`))).error, /a part of a key is/);
  }
});

test("operation inside of a step is an error, also in a branch", async () => {
  const found = await lines(durable('await ctx.step("outer", async () => { ctx.setStatusMessage("fine"); await Promise.all([ctx.step("inner", () => 1)]); })'), 4);
  assert.equal(found[1].status_message, "fine");
  assert.equal(found[2].kind, "InsideStep");
  assert.match(found[3].error, /`inner` is used inside the step `outer`/);
});

test("last error counts after all attempts, and a permanent error is not retried", async () => {
  const found = await lines(durable('let n = 0; await ctx.step("a", () => { throw new Error(`try ${(n += 1)}`); }, { retry: 2 });'), 3);
  assert.deepEqual(found.map(({ error }) => error), [undefined, "try 2", "try 2"]);
  const permanent = durable(`
    class NoRepo extends Permanent {}
    try { await ctx.step("a", () => { throw new NoRepo("no such repo"); }, { retry: 5 }); } catch (error) { return [error.name, error.message]; }`);
  assert.deepEqual((await lines(permanent, 3)).at(-1).return, ["Permanent", "no such repo"]);
});

test("recorded entry as response to once is used", async () => {
  await talking(durable('return ctx.step("a", () => 1, { once: true });'), async (talk) => {
    for (const [call, entry, expected] of [[1, { value: 5 }, { return: 5 }], [2, { failed: "no" }, { error: "no", kind: "ToolError" }]]) {
      talk.call("tool", call);
      await talk.receive();
      talk.send({ call, recorded: "a", ...entry });
      assert.deepEqual(await talk.receive(), { call, replayed: ["a"] });
      assert.deepEqual(await talk.last(), { call, ...expected });
    }
  });
});

test("promise of a dropped run never settles and its signal is aborted", async () => {
  await talking(`
    app.durable("tool", {}, async (ctx) => {
      ctx.signal.addEventListener("abort", () => console.log("aborted"));
      try {
        await ctx.sleep("a", 1);
      } catch {
        console.log("caught");
      } finally {
        console.log("finally");
      }
    });`, async (talk) => {
    talk.call("tool");
    await talk.receive();
    talk.send({ call: 1, drop: "parked" });
    assert.deepEqual(await talk.receive(), { call: 1, dropped: true });
    talk.send({ call: 1, woke: "a" });
    talk.send({ ping: 1 });
    assert.deepEqual(await talk.receive(), { pong: 1 });
    talk.send({ drain: true });
    assert.equal(await talk.exitCode(), 0);
    assert.equal(talk.errors, "aborted\n");
  });
});

test("drop waits for a step in progress", async () => {
  await talking(`
    let release;
    app.durable("tool", {}, async (ctx) => {
      try {
        await ctx.step("a", () => new Promise((resolve) => (release = resolve)));
      } finally {
        console.log("never");
      }
    });
    app.tool("go", {}, async () => release());`, async (talk) => {
    talk.call("tool", 1);
    await talk.receive();
    talk.send({ call: 1, drop: "moved" });
    talk.call("go", 2);
    const found = [await talk.receive(), await talk.receive()].sort((one, other) => one.call - other.call);
    assert.deepEqual(found, [{ call: 1, dropped: true }, { call: 2, return: null }]);
    assert.equal(talk.errors, "");
  });
});

test("context of an ended run rejects", async () => {
  await talking(`
    let late;
    app.durable("tool", {}, async (ctx) => void (late = () => ctx.step("a", () => 1)));
    app.tool("go", {}, async () => late().catch((error) => [error.name, error.message]));`, async (talk) => {
    talk.call("tool", 1);
    await talk.receive();
    talk.call("go", 2);
    assert.deepEqual((await talk.last()).return, ["RunEnded", "`a` is used after its run has ended"]);
  });
});

test("operations after a cancellation fail without a line", async () => {
  await talking(durable('await ctx.step("a", () => 1); console.log(ctx.cancelled, ctx.signal.aborted); await ctx.step("b", () => 2);'), async (talk) => {
    talk.call("tool");
    await talk.receive();
    await talk.receive();
    talk.send({ call: 1, cancel: "requested by the client" });
    talk.send({ call: 1, recorded: "a" });
    assert.deepEqual(await talk.last(), { call: 1, error: "the task was cancelled before `b` completed", kind: "ToolError" });
    assert.equal(talk.errors, "true true\n");
  });
});

test("rejected block is an error of the next emit", async () => {
  await talking('app.tool("tool", {}, async (ctx) => { for (let n = 0; n < 70; n += 1) try { await ctx.emit("a"); } catch (error) { return [n, error.kind, error.key]; } });', async (talk) => {
    talk.call("tool");
    await talk.lines(64);
    talk.send({ call: 1, rejected: "", segment: 2, kind: "too_large", message: "too large" });
    assert.deepEqual((await talk.last()).return, [64, "too_large", ""]);
  });
});

test("time is a whole number of milliseconds and never negative", async () => {
  const [{ ms: parts }] = await lines(durable('await ctx.sleep("a", { minutes: 1, seconds: 0.0015 });'), 1);
  const [{ ms: negative }] = await lines(durable('await ctx.sleep("a", -1);'), 1);
  assert.deepEqual([parts, negative], [60_002, 0]);
});

test("1,000 parallel calls complete", async () => {
  await talking('app.durable("tool", { input: { n: t.integer() } }, async (ctx, { n }) => ctx.step("n", async () => n));', async (talk) => {
    for (let call = 1; call <= 1000; call += 1) talk.call("tool", call, { n: call });
    const found = new Map();
    while (found.size < 1000) {
      const line = await talk.exchange();
      if ("return" in line) found.set(line.call, line.return);
    }
    assert([...found].every(([call, value]) => call === value));
  });
});

test("error that no code handles ends no other call", async () => {
  await talking(`
    app.tool("tool", {}, async (ctx) => {
      Promise.reject(new Error("lost"));
      setImmediate(() => ctx.info("late"));
    });
    app.tool("next", {}, async () => new Promise((resolve) => setTimeout(resolve, 50)).then(() => 2));`, async (talk) => {
    talk.call("tool", 1);
    await talk.last();
    talk.call("next", 2);
    assert.equal((await talk.last()).return, 2);
    assert.match(talk.errors, /unhandledRejection: Error: lost/);
    assert.match(talk.errors, /uncaughtException: RunEnded/);
  });
});

test("result instead of a function is an error", async () => {
  assert.match((await last(durable('await ctx.step("push", Promise.resolve(1));'))).error, /step `push` needs a function/);
});

test("line of several chunks and of several bytes per character is read", async () => {
  await talking('app.tool("tool", { input: { text: t.string() } }, async (ctx, { text }) => text.length);', async (talk) => {
    const text = "猫".repeat(200_000);
    talk.call("tool", 1, { text });
    assert.equal((await talk.last()).return, 200_000);
  });
});

test("lifespan opens before hello and closes after drain", async () => {
  await talking(`
    app.lifespan(async () => { app.opened = ["first"]; return async () => console.log("closed first"); });
    app.lifespan(() => { app.opened.push("second"); return () => console.log("closed second"); });
    app.tool("tool", {}, async () => app.opened);`, async (talk) => {
    talk.call("tool");
    assert.deepEqual((await talk.last()).return, ["first", "second"]);
    talk.send({ drain: true });
    assert.equal(await talk.exitCode(), 0);
    assert.equal(talk.errors, "closed second\nclosed first\n");
  });
});

test("failed lifespan exits with code 2", async () => {
  await talking('app.lifespan(async () => { throw new Error("no database"); });', async (talk) => {
    assert.equal(await talk.exitCode(), 2);
    assert.match(talk.errors, /no database/);
  }, { hello: false });
});

test("tool that is declared later is sent", async () => {
  await talking('app.tool("tool", {}, async () => { app.tool("second", {}, async () => 2); });', async (talk) => {
    assert.deepEqual(talk.hello.tools.map(({ name }) => name), ["tool"]);
    talk.call("tool", 1);
    assert.deepEqual((await talk.receive()).tools.map(({ name }) => name), ["tool", "second"]);
    await talk.last();
    talk.call("second", 2);
    assert.equal((await talk.last()).return, 2);
  });
});

test("program that is started by hand runs outlive serve, and an imported one does nothing", async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "outlive-test-")));
  try {
    const file = join(folder, "tools.mjs");
    writeFileSync(file, `import { Outlive } from ${JSON.stringify(new URL("../outlive.mjs", import.meta.url).href)};\nexport const app = new Outlive("a");\napp.run();\n`);
    writeFileSync(join(folder, "main.mjs"), 'import { app } from "./tools.mjs";\nconsole.log(app.name);\n');
    writeFileSync(join(folder, "outlive"), '#!/bin/sh\necho "$@"\nexit 3\n');
    chmodSync(join(folder, "outlive"), 0o755);
    const { OUTLIVE_WORKER, ...env } = process.env;
    const run = (args, path) => spawnSync(process.execPath, args, { env: { ...env, PATH: path }, encoding: "utf8" });
    const done = run([file, "--stdio"], folder + delimiter + env.PATH);
    assert.deepEqual([done.stdout, done.status], [`serve ${file} --stdio\n`, 3]);
    const missing = run([file], "/does/not/exist");
    assert.deepEqual([missing.stdout, missing.status], ["", 1]);
    assert.match(missing.stderr, /the program `outlive` is not on the path/);
    const imported = run([join(folder, "main.mjs")], folder);
    assert.deepEqual([imported.stdout, imported.status], ["a\n", 0]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("standard output of functions goes to standard error", async () => {
  await talking('app.tool("tool", {}, async () => { console.log("printed"); process.stdout.write("written\\n"); });', async (talk) => {
    talk.call("tool");
    assert.deepEqual(await talk.last(), { call: 1, return: null });
    talk.send({ drain: true });
    await talk.exitCode();
    assert.equal(talk.errors, "printed\nwritten\n");
  });
});

test("process whose server is gone exits while a function waits", async () => {
  await talking(durable('setInterval(() => {}, 1000); await ctx.sleep("a", 1);'), async (talk) => {
    talk.call("tool");
    await talk.receive();
    talk.child.stdin.end();
    assert.equal(await talk.exitCode(), 0);
  });
});
