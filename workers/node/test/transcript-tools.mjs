// The tools of the transcripts.

import { Ambiguous, Outlive, Permanent, Result, t, ToolError } from "../outlive.mjs";

const app = new Outlive("transcripts");
const repo = t.string({ description: "Which repository." });
const approval = { yes: t.boolean() };

app.tool("greet", { description: "Greets a person.", input: { name: t.string({ description: "Name of the person." }) } },
  async (ctx, { name }) => `hello ${name}`);

app.durable("build", { description: "Builds a repository and pushes it.", input: { repo } }, async (ctx, { repo }) => {
  const image = await ctx.step("build", () => `${repo}:1`);
  await ctx.step("push", () => {});
  return `${image} is out`;
});

app.durable("deploy", { description: "Builds a repository, asks, and pushes it.", input: { repo } }, async (ctx, { repo }) => {
  const image = await ctx.step("build", async () => `${repo}:1`);
  const { content } = await ctx.elicit("approve", `Deploy ${image}?`, approval, { outcome: true });
  if (!content?.yes) return "nothing happened";
  await ctx.step("push", async () => {});
  return `${image} is out`;
});

app.durable("nap", {}, async (ctx) => {
  await ctx.sleep("soak", { minutes: 10 });
  return "awake";
});

app.durable("fetch", { input: { failure: t.enum(["transient", "permanent"]) } }, async (ctx, { failure }) => {
  await ctx.step("fetch", () => {
    throw failure === "permanent" ? new Permanent("disk full") : new Error("disk full");
  });
});

app.durable("flaky", {}, async (ctx) => {
  let tries = 0;
  return ctx.step("fetch", async () => {
    tries += 1;
    await ctx.emit("attempt");
    if (tries === 1) throw new Error("connection lost");
    return "page";
  }, { retry: 3 });
});

app.durable("pay", { input: { amount: t.integer() } }, async (ctx, { amount }) => {
  try {
    return await ctx.step("charge", () => `receipt ${amount}`, { once: true });
  } catch (error) {
    if (error instanceof Ambiguous) return "unclear";
    throw error;
  }
});

app.durable("trio", {}, async (ctx) => (await Promise.all(["a", "b", "c"].map((key) => ctx.step(key, () => key)))).join(" "));

app.durable("rollout", { input: { regions: t.array(t.string()) } }, async (ctx, { regions }) => {
  const order = ctx.scope("order");
  for (const region of regions) await order.step(["push", region], () => {});
  return "out";
});

app.durable("inputs", {}, async (ctx) => {
  const goOn = await ctx.elicit("confirm", "Continue?", t.boolean());
  const size = await ctx.elicit("size", "Which size?", t.enum(["small", "large"]));
  const order = await ctx.elicit("order", "Your order?", {
    name: t.string({ minLength: 1, maxLength: 40 }),
    count: t.integer({ minimum: 1, maximum: 9 }),
    price: t.number().optional(),
    express: t.boolean({ default: false }),
    toppings: t.array(t.enum(["cheese", "tomato"])).optional(),
  }, { timeout: { seconds: 90 }, audience: "caller" });
  await ctx.elicitUrl("login", "Log in first.", "https://example.com/login", { audience: ["ada", "bob"] });
  const summary = await ctx.sample("summary", "Summarize.", { maxTokens: 100 });
  return `${goOn ? "yes" : "no"} ${size} ${order.count} ${order.name} ${order.toppings?.join(" ")} ${summary.content.text}`;
});

app.durable("render", {}, async (ctx) => {
  const film = await ctx.externalEvent("film", { timeout: { days: 1 } });
  await ctx.step("submit", () => film.token);
  return `film: ${await film.value()}`;
});

app.tool("count", { input: { to: t.integer() } }, async (ctx, { to }) => {
  for (let number = 1; number <= to; number += 1) await ctx.emit(String(number));
  return "done";
});

app.durable("stream", {}, async (ctx) => {
  await ctx.step("compile", () => ctx.emit("compiling"));
  await ctx.scope("order").emit("packed");
  await ctx.emit("shipped");
  return "done";
});

app.tool("report", { input: { kind: t.enum(["object", "blocks", "error"]) } }, async (ctx, { kind }) => {
  if (kind === "object") return { count: 2 };
  if (kind === "error") throw new ToolError("nothing found");
  return new Result([{ type: "text", text: "a" }, { type: "text", text: "b" }], { structured: { count: 2 } });
});

app.tool("status", {}, async (ctx) => {
  ctx.progress(1, 2, "half");
  ctx.setStatusMessage("packing");
  ctx.warning({ free: 3 });
});

const order = app.durable("order", { input: { fail: t.boolean() } }, async (ctx) => {
  await ctx.step("reserve", () => 7);
  await ctx.elicit("approve", "Order it?", approval);
  return "ordered";
});
order.cleanup(async (task, { fail }) => {
  const shelf = await task.get("reserve");
  if (fail) throw new ToolError(`shelf ${shelf} is stuck`);
});

app.durable("token", {}, async (ctx) => (await ctx.step("token", () => "s3cret", { secret: true })).length);

app.durable("shape", { handlerRevision: "2", migrateJournal: { 1: (key, value) => ({ name: value, tag: 1 }) } }, async (ctx) => {
  const type = { name: t.string(), tag: t.integer() };
  const found = await ctx.step("image", () => ({ name: "shop", tag: 2 }), { type });
  return `${found.name}:${found.tag}`;
});

app.durable("identity", {}, async (ctx) => `${ctx.principal?.name ?? "anonymous"} ${ctx.idempotencyKey("pay")}`);

app.tool("noisy", {}, async () => {
  console.log('{"hello":1}');
  return "done";
});

app.run();
