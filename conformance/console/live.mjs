// Live updates, the theme and motion.

import { approval, approve, call } from "./mcp.mjs";
import { expect, percentile, some } from "./rows.mjs";
import { Visit } from "./visit.mjs";

export const live = {
  name: "live updates of a task page, and of an input request that another person settles",
  bar: "the pages follow without a reload",
  async run(browser, { origin, sessions, tokens, deciding }) {
    const task = await call(origin, tokens.ann, "deploy", { version: "live", env: "prod" });
    const page = await Visit.open(browser, origin, sessions.ada);
    await page.goto(`/console/tasks/${task}`);
    const request = await Visit.open(browser, origin, sessions.ada);
    await request.goto(`/console/${approval(task)}`);
    await page.page.evaluate(() => { window.isSame = true; });
    await approve(origin, deciding.ben, task);
    const ended = await page.until("the end of the task", () => document.body.innerText.includes("completed"), 20_000);
    const settled = await request.until("the decision", () => document.querySelector("button[value=accept]") === null, 20_000);
    expect(await page.page.evaluate(() => window.isSame === true), "the page was loaded again");
    await page.close();
    await request.close();
    return { figure: `task after ${ended.millis} ms, request after ${settled.millis} ms`, met: true };
  },
};

export const interrupted = {
  name: "an interrupted stream of hints",
  bar: "a line reports it, and the page follows without a reload",
  async run(browser, { origin, sessions, tokens, deciding, screenshots }) {
    const task = await call(origin, tokens.ann, "deploy", { version: "interrupted", env: "prod" });
    const visit = await Visit.open(browser, origin, sessions.ada);
    visit.blocked = "/api/v1/stream";
    await visit.goto(`/console/tasks/${task}`);
    const line = () => document.querySelector("main > [role=status]:not([hidden])")?.textContent.includes("interrupted");
    await visit.until("the line", line);
    await visit.check("task-interrupted", { screenshots });
    await visit.page.evaluate(() => { window.isSame = true; });
    await approve(origin, deciding.ben, task);
    const { millis } = await visit.until("the end of the task", () => document.body.innerText.includes("completed"), 20_000);
    expect(await visit.page.evaluate(() => window.isSame === true), "the page was loaded again");
    await visit.close();
    const { defects } = visit;
    return { figure: `task after ${millis} ms, ${defects.length} defects${some(defects)}`, met: defects.length === 0 };
  },
};

export const badge = {
  name: "badge of an open inbox, in the browser",
  bar: ({ short }) => (short ? "p95 ≤ 5 s" : "p95 ≤ 1 s"),
  async run(browser, { origin, sessions, tokens, short }) {
    const visit = await Visit.open(browser, origin, sessions.ada);
    await visit.goto("/console/overview");
    await visit.until("the stream", () => document.querySelector("button.live") !== null);
    await new Promise((done) => setTimeout(done, 1_500));
    const times = [];
    for (let count = 0; count < (short ? 3 : 20); count++) {
      const before = await visit.page.$eval("#inbox-count", (it) => it.textContent);
      await call(origin, tokens.ann, "deploy", { version: `badge ${count}`, env: "prod" });
      const { millis } = await visit.until("the badge", (old) => document.getElementById("inbox-count").textContent !== old, 15_000, before);
      times.push(millis);
      await new Promise((done) => setTimeout(done, 700));
    }
    await visit.close();
    const p95 = percentile(times, 95);
    return { figure: `p50 ${percentile(times, 50)} ms, p95 ${p95} ms`, met: p95 <= (short ? 5_000 : 1_000) };
  },
};

export const theme = {
  name: "theme: switch, and after a reload",
  bar: "system, light, dark",
  async run(browser, { origin, sessions }) {
    const visit = await Visit.open(browser, origin, sessions.ada);
    await visit.goto("/console/tasks");
    const seen = [];
    for (let count = 0; count < 3; count++) {
      await visit.page.evaluate(() => document.querySelector("[data-theme-switch]").click());
      const now = await visit.page.$eval("html", (it) => it.dataset.theme);
      await visit.page.reload({ waitUntil: "load" });
      const later = await visit.page.$eval("html", (it) => it.dataset.theme);
      expect(now === later, `the theme is ${later} after a reload instead of ${now}`);
      seen.push(now);
    }
    await visit.close();
    return { figure: seen.join(", "), met: seen.join() === "light,dark,system" };
  },
};

export const motion = {
  name: "motion with prefers-reduced-motion",
  bar: "no animation",
  async run(browser, { origin, sessions }) {
    const visit = await Visit.open(browser, origin, sessions.ada);
    await visit.page.emulateMediaFeatures([{ name: "prefers-reduced-motion", value: "reduce" }]);
    let moving = 0;
    for (const path of ["", "tasks?state=running", "overview"]) {
      await visit.goto(`/console/${path}`);
      moving += await visit.page.evaluate(() => document.getAnimations().length);
    }
    await visit.close();
    return { figure: `${moving} animations`, met: moving === 0 };
  },
};
