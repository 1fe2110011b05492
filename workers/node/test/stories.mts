// The stories of the guide, which the type checker reads.

import { Outlive, Permanent, Result, t, test, TimedOut, type Outcome } from "../outlive.mjs";

const app = new Outlive("shop");
const build = async (repo: string) => ({ name: `${repo}:1`, builtAt: new Date(), size: 3 });
const push = async (image: string, region: string): Promise<void> => {
  if (region === "moon") throw new Permanent(`${image}: there is no region \`moon\``);
};

app.lifespan(async () => () => console.error("closed"));

export const deploy = app.durable(
  "deploy",
  { description: "Builds and rolls out.", task: "auto", input: { repo: t.string(), regions: t.array(t.string()), note: t.string().optional() } },
  async (ctx, { repo, regions, note }) => {
    const image = await ctx.step("build", () => build(repo));
    const builtAt: string = image.builtAt; // a date is text in the journal
    const name: string = image.name;
    const text: string | undefined = note;
    if (!(await ctx.elicit("approve", `Deploy ${name} of ${builtAt}? ${text}`, { yes: t.boolean() })).yes) return "nothing happened";
    await Promise.all(regions.map((region) => ctx.step(["push", region], () => push(name, region), { retry: 3 })));
    await ctx.sleep("soak", { minutes: 10 });
    return `${name} is out`;
  },
);

deploy.cleanup(async (task, { repo }) => {
  const image = await task.get("build", { name: t.string(), size: t.integer() });
  if (image) console.error(`delete ${image.name} of ${repo}, ${task.reason}`);
});

app.tool("search", { readOnly: true, input: { words: t.string(), limit: t.integer({ minimum: 1, maximum: 50 }) } }, async (ctx, { words, limit }) => {
  const response = await fetch(`https://example.com/?q=${words}&n=${limit.toFixed()}`, { signal: ctx.signal });
  ctx.info(`status ${response.status}`);
  return new Result([{ type: "text", text: await response.text() }]);
});

app.durable("ask", {}, async (ctx) => {
  const size: "s" | "l" = await ctx.elicit("size", "Which?", t.enum(["s", "l"]));
  const outcome: Outcome<boolean> = await ctx.elicit("sure", "Really?", t.boolean(), { outcome: true, audience: { scope: "shop:approve" } });
  const event = await ctx.externalEvent("film", { timeout: { days: 1 }, type: t.string() });
  const film: string = await event.value();
  const image = await ctx.step("image", () => JSON.parse("{}"), { type: { name: t.string(), tag: t.integer() } });
  const tag: number = image.tag;
  try {
    await ctx.elicitUrl("login", "Log in.", "https://example.com", { timeout: 60_000 });
  } catch (error) {
    if (!(error instanceof TimedOut)) throw error;
  }
  return `${size} ${outcome.action} ${film} ${tag} ${ctx.principal?.name} ${ctx.idempotencyKey(["push", 3])}`;
});

export async function testDeploy(): Promise<void> {
  const outcome = await test(deploy, { repo: "shop", regions: ["eu"] }).accept("approve", { yes: true }).crashAfterEach();
  if (outcome.text !== "shop:1 is out" || outcome.executed["build"] !== 1) throw new Error(outcome.text);
}

// @ts-expect-error a form of another type
app.durable("wrong", { input: { n: t.integer() } }, async (ctx, { n }) => n.toUpperCase());

app.run();
