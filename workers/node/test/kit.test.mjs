// The test kit.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { Ambiguous, Outlive, t, TaskCancelled, test as play, TestFailure, ToolError } from "../outlive.mjs";

const app = new Outlive("shop");
const deploy = app.durable("deploy", { task: "auto", input: { repo: t.string(), regions: t.array(t.string()) } }, async (ctx, { repo, regions }) => {
  const image = await ctx.step("build", async () => `${repo}:1`);
  if (!(await ctx.elicit("approve", `Deploy ${image}?`, { yes: t.boolean() })).yes) return "nothing happened";
  for (const region of regions) {
    ctx.setStatusMessage(`rolling out to ${region}`);
    await ctx.step(["push", region], () => {}, { retry: 3 });
    await ctx.emit(`${region} done`);
    await ctx.sleep(["soak", region], { minutes: 10 });
  }
  return `${image} is out`;
});
const call = (args = { repo: "shop", regions: [] }) => play(deploy, args);
const tool = (fn, isDurable = true) => new Outlive("a")[isDurable ? "durable" : "tool"]("tool", {}, fn);
const fails = (promise, message) => assert.rejects(promise, (error) => error instanceof TestFailure && message.test(error.message));

test("crash after each entry has the same result", async () => {
  const outcome = await call({ repo: "shop", regions: ["eu", "us"] }).accept("approve", { yes: true }).strict().crashAfterEach();
  assert.equal(outcome.text, "shop:1 is out");
  assert.deepEqual(outcome.steps, ["build", "push/eu", "push/us"]);
  assert.deepEqual(outcome.executed, { build: 1, "push/eu": 1, "push/us": 1 });
  assert.deepEqual(outcome.inputRequests, ["approve"]);
  assert.deepEqual(outcome.segments.map(({ text }) => text), ["eu done", "us done"]);
  assert(outcome.statusMessages.includes("rolling out to us"));
});

test("declined request is an error", async () => {
  const outcome = await call().decline("approve").run();
  assert.deepEqual([outcome.isError, outcome.text], [true, "the user declined the input request `approve`"]);
  assert.equal((await call().accept("approve", { yes: false }).run()).text, "nothing happened");
});

test("missing and unused responses and unknown keys fail the test", async () => {
  await fails(call().run(), /`approve` has no scripted response/);
  await fails(call().accept("approve", { yes: true }).accept("other", {}).strict().run(), /\["other"\] are not used/);
  await fails(call().accept("approve", { yes: true }).crashAfter("bild"), /`bild` is never recorded/);
  await fails(call().accept("approve", { yes: true }).cancelAfter("bild"), /`bild` is never recorded/);
});

test("results that differ between runs fail the test", async () => {
  let runs = 0;
  const random = tool(async (ctx) => {
    runs += 1;
    await ctx.step("a", () => 1);
    return runs;
  });
  await fails(play(random).run(), /put every effect and every decision into a step/);
});

test("replay that requests less fails the test", async () => {
  let runs = 0;
  await fails(play(tool(async (ctx) => ((runs += 1) === 1 ? ctx.step("a", () => 1) : 1))).run(), /a replay does not request \["a"\]/);
});

test("key that is used twice fails the test although the handler catches the error", async () => {
  const twice = tool(async (ctx) => {
    await ctx.step("a", () => 1);
    await ctx.step("a", () => 2).catch(() => {});
  });
  await fails(play(twice).run(), /the key `a` is used twice/);
});

test("replayed block that differs fails the test", async () => {
  let runs = 0;
  await fails(play(tool((ctx) => ctx.emit(String((runs += 1))))).run(), /a replay emits/);
});

test("parallel branches with timers and requests survive each crash", async () => {
  const parallel = tool((ctx) => Promise.all([0, 1, 2].map(async (n) => {
    const inner = ctx.scope(["branch", n]);
    await inner.sleep("wait", { seconds: 10 - n });
    await inner.emit(`start ${n}`);
    if (n === 1) await inner.elicit("ok", "Go on?", t.boolean());
    return inner.step("work", async () => n);
  })));
  const outcome = await play(parallel).accept(["branch", 1, "ok"], { yes: true }).crashAfterEach();
  assert.deepEqual(outcome.structured, [0, 1, 2]);
  assert.deepEqual([...new Set(Object.values(outcome.executed))], [1]);
  assert.deepEqual(outcome.segments.map(({ text }) => text), ["start 2", "start 1", "start 0"]);
});

test("once is ambiguous if its run is lost in the step", async () => {
  const pay = tool(async (ctx) => {
    const other = ctx.step("other", () => 1);
    const charged = await ctx.step("charge", () => pause(50, "charged"), { once: true }).catch((error) => {
      if (error instanceof Ambiguous) return "unclear";
      throw error;
    });
    await other;
    return charged;
  });
  assert.equal((await play(pay).run()).text, "charged");
  await fails(play(pay).crashAfter("other"), /after a crash behind `other` the result is .*unclear.*, not .*charged/);
});

test("external event and sampling have scripted values", async () => {
  const render = tool(async (ctx) => {
    const event = await ctx.externalEvent("film", { timeout: { minutes: 1 }, type: t.string() });
    const token = await ctx.step("submit", () => event.token);
    const summary = await ctx.sample("summary", "Summarize.");
    return [token, await event.value(), await event.value(), summary.content.text];
  });
  const scripted = play(render).complete("film", "film.mp4").respond("summary", { result: { content: { type: "text", text: "short" } } });
  assert.deepEqual((await scripted.crashAfterEach()).structured, ["token of film", "film.mp4", "film.mp4", "short"]);
});

test("cancellation ends waits and runs the cleanup", async () => {
  const tidied = [];
  const order = new Outlive("a").durable("order", { input: { fail: t.boolean() } }, async (ctx, { fail }) => {
    await ctx.step("reserve", () => 7);
    try {
      await ctx.sleep("wait", { days: 1 });
    } catch (error) {
      if (fail || !(error instanceof TaskCancelled)) throw error;
    }
    return "kept";
  });
  order.cleanup(async (task, { fail }) => void tidied.push([task.reason, await task.get("reserve", t.integer()), await task.get("other"), fail]));
  const cancelled = await play(order, { fail: true }).cancelAfter("reserve");
  assert.deepEqual([cancelled.cancelled, cancelled.cleanup, tidied], [true, "done", [["cancelled", 7, undefined, true]]]);
  const kept = await play(order, { fail: false }).cancelAfter("reserve");
  assert.deepEqual([kept.cancelled, kept.cleanup, kept.text], [false, undefined, "kept"]);
});

test("lifespan opens and closes around a test", async () => {
  const own = new Outlive("a");
  const events = [];
  own.lifespan(() => (events.push("open"), () => events.push("close")));
  const failing = own.tool("tool", {}, async (ctx) => {
    events.push(ctx.principal.name);
    throw new ToolError("no");
  });
  assert.equal((await play(failing).run()).isError, true);
  assert.deepEqual(events, ["open", "test", "close"]);
});
