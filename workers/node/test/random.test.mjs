// Random programs: each crash has the result of an undisturbed run.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Outlive, t, test as play } from "../outlive.mjs";

const PROGRAMS = 100;

/** Returns random integers below a limit, the same for each seed. */
function dice(seed) {
  let state = seed + 1;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/** Returns a list of operations. `all` has branches, each of which is a program with its own scope. */
function program(roll, depth = 0) {
  return Array.from({ length: 1 + roll(3) }, (_, number) => {
    const kinds = depth < 2 ? ["step", "step", "sleep", "ask", "emit", "all"] : ["step", "sleep", "emit"];
    const kind = kinds[roll(kinds.length)];
    const branches = kind === "all" ? Array.from({ length: 1 + roll(3) }, () => program(roll, depth + 1)) : [];
    return { kind, key: kind + number, value: roll(100), branches };
  });
}

/** Returns the result of a program, and collects the keys of its input requests. */
function expected(operations, requests, prefix = []) {
  return operations.map(({ kind, key, value, branches }) => {
    if (kind === "all") return branches.map((branch, n) => expected(branch, requests, [...prefix, key, n]));
    if (kind === "ask") requests.push([...prefix, key]);
    return { step: value, ask: true }[kind] ?? null;
  });
}

async function run(ctx, operations) {
  const results = [];
  for (const { kind, key, value, branches } of operations) {
    if (kind === "step") results.push(await ctx.step(key, async () => value));
    else if (kind === "sleep") results.push(await ctx.sleep(key, { seconds: value }));
    else if (kind === "ask") results.push(await ctx.elicit(key, "Go on?", t.boolean()));
    else if (kind === "emit") results.push(await ctx.emit(`${key} ${value}`));
    else results.push(await Promise.all(branches.map((branch, n) => run(ctx.scope([key, n]), branch))));
  }
  return results;
}

const tool = new Outlive("random").durable("play", { input: { operations: t.array(t.any()) } }, (ctx, { operations }) => run(ctx, operations));

test("random programs survive each crash", async () => {
  for (let seed = 0; seed < PROGRAMS; seed += 1) {
    const operations = program(dice(seed));
    const requests = [];
    const result = expected(operations, requests);
    const call = play(tool, { operations }).strict();
    for (const key of requests) call.accept(key, { yes: true });
    const outcome = await call.crashAfterEach();
    assert.deepEqual(outcome.structured, result, `seed ${seed}`);
    assert.deepEqual([...outcome.inputRequests].sort(), requests.map((key) => key.join("/")).sort(), `seed ${seed}`);
  }
});
