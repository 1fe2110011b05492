// The journal of a task with many entries.

import { percentile } from "./rows.mjs";
import { Visit } from "./visit.mjs";

const SIZE = "every entry is reached, ≤ 150 KiB for the first view";

export const journal = {
  name: "journal of a long task",
  bar: ({ short }) => (short ? SIZE : `first paint ≤ 300 ms, p95 frame ≤ 20 ms while scrolling to its end, ${SIZE}`),
  async run(browser, { origin, sessions, journal: { path, entries }, short }) {
    const visit = await Visit.open(browser, origin, sessions.ada);
    const { page } = visit;
    let bytes = 0;
    const count = async (response) => {
      if (!response.url().includes("/api/")) bytes += (await response.buffer().catch(() => Buffer.alloc(0))).length;
    };
    page.on("response", count);
    await visit.goto("/console/tasks");
    bytes = 0;
    await visit.goto(path);
    const painted = () => performance.getEntriesByType("paint").find((it) => it.name === "first-contentful-paint")?.startTime;
    await visit.until("the first paint", painted);
    const paint = await page.evaluate(painted);
    await page.evaluate(() => new Promise((done) => setTimeout(done, 100)));
    const first = bytes;
    page.off("response", count);
    const frames = await page.evaluate(async (entries) => {
      const frames = [];
      let last = performance.now();
      const end = last + 120_000;
      while (performance.now() < end) {
        const rows = document.querySelectorAll("ol.journal li").length;
        const isAtEnd = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 2;
        if (rows >= entries && isAtEnd) return { frames, rows };
        window.scrollBy(0, 600);
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        frames.push(now - last);
        last = now;
      }
      return { frames, rows: document.querySelectorAll("ol.journal li").length };
    }, entries);
    await visit.close();
    const p95 = percentile(frames.frames, 95);
    const figure = `first paint ${Math.round(paint)} ms, ${frames.rows} of ${entries} rows, p95 frame ${p95.toFixed(1)} ms, ${(first / 1024).toFixed(0)} KiB`;
    const isFast = paint <= 300 && p95 <= 20;
    return { figure, met: frames.rows >= entries && first <= 150 * 1024 && (isFast || short) };
  },
};
