// Tools of `cargo xtask workers`. Steps append one line per execution to the file of `EXECUTIONS`.

import { appendFileSync, closeSync, openSync } from "node:fs";

const { Outlive, t } = await import(process.env.PACKAGE);

const app = new Outlive("bench");
const { EXECUTIONS } = process.env;
const here = new Set();
let complete;
const completed = new Promise((resolve) => (complete = resolve));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Appends a line with one write, so that concurrent lines stay whole. */
const record = (line) => appendFileSync(EXECUTIONS, `${line}\n`);

/** Returns whether no process has called this function with the key before. */
function isFirst(key) {
  try {
    closeSync(openSync(`${EXECUTIONS}.${key}`, "wx"));
    return true;
  } catch {
    return false;
  }
}

async function execute(key, number) {
  // Before the line, because the process is killed as soon as the line is there.
  const isKilled = number === 5 && isFirst(key);
  record(`${key} ${number} ${process.pid} ${Date.now()}`);
  if (isKilled) await pause(3_600_000);
  return number;
}

// The first execution of the fifth step lasts until its process is killed.
app.durable("ten", { task: "always", input: { key: t.string() } }, async (ctx, { key }) => {
  let sum = 0;
  for (let number = 1; number <= 10; number += 1) sum += await ctx.step(["step", number], () => execute(key, number));
  return `${key} ${sum}`;
});

/** Waits until all calls are in this step of this process. */
function meet(key, size) {
  here.add(key);
  if (here.size >= size) complete();
  return completed;
}

app.durable("crowd", { task: "always", input: { key: t.string(), size: t.integer() } }, async (ctx, { key, size }) => {
  await ctx.step("first", () => record(`${key} first`));
  await ctx.step("meet", () => meet(key, size));
  await ctx.step("last", () => record(`${key} last`));
  return key;
});

// Steps without an effect, and their times.
app.durable("steps", { task: "always", input: { count: t.integer() } }, async (ctx, { count }) => {
  const nanos = [];
  for (let number = 0; number < count; number += 1) {
    const started = process.hrtime.bigint();
    await ctx.step(["n", number], async () => number);
    nanos.push(Number(process.hrtime.bigint() - started));
  }
  return { nanos };
});

async function run(ctx, operations, name) {
  const results = [];
  for (const { kind, key, value, branches } of operations) {
    const path = `${name}/${key}`;
    if (kind === "step") {
      const body = async () => {
        record(path);
        await pause(value / 10);
        return value;
      };
      results.push(await ctx.step(key, body));
    } else if (kind === "sleep") results.push(await ctx.sleep(key, { seconds: value / 1_000 }));
    else if (kind === "ask") results.push(await ctx.elicit(key, "Continue?", t.boolean()));
    else if (kind === "emit") results.push(await ctx.emit(path));
    else results.push(await Promise.all(branches.map((branch, n) => run(ctx.scope([key, n]), branch, `${path}/${n}`))));
  }
  return results;
}

// `kill` is for the process that kills this one.
const program = { key: t.string(), kill: t.any(), operations: t.array(t.any()) };
app.durable("play", { task: "always", input: program }, (ctx, { key, operations }) => run(ctx, operations, key));

app.run();
