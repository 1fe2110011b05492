// The console by keyboard.

import { approval, call, read } from "./mcp.mjs";
import { expect } from "./rows.mjs";
import { Visit } from "./visit.mjs";

const path = (page) => page.evaluate(() => location.pathname);

async function keys(page, ...names) {
  for (const name of names) await page.keyboard.press(name);
}

/** Presses keys that open another page. */
async function go(page, ...names) {
  await Promise.all([page.waitForNavigation({ waitUntil: "load" }), keys(page, ...names)]);
}

export const keyboard = {
  name: "keyboard only: open, move, select, filter, pause, list the keys, approve",
  bar: "everything works",
  async run(browser, { origin, sessions, tokens, deciding }) {
    const task = await call(origin, tokens.ann, "deploy", { version: "keys", env: "prod" });
    const visit = await Visit.open(browser, origin, sessions.ada);
    const { page } = visit;
    await visit.goto("/console/");
    for (const [key, section] of [["t", "tasks"], ["o", "overview"], ["a", "audit"], ["i", ""]]) {
      await go(page, "g", key);
      expect((await path(page)) === `/console/${section}`, `g ${key} opened ${await path(page)}`);
    }
    await keys(page, "j", "j", "k");
    expect(await page.evaluate(() => document.activeElement.matches("[data-row] .name")), "j and k do not move");
    await go(page, "Enter");
    expect((await path(page)).includes("/inputs/"), `Enter opened ${await path(page)}`);
    await visit.goto("/console/tasks");
    await keys(page, "j", "x");
    expect((await page.$$(".pick input:checked")).length === 1, "x does not select");
    await keys(page, "/");
    expect(await page.evaluate(() => document.activeElement.matches("[data-find]")), "/ does not go to the filter");
    await page.evaluate(() => document.activeElement.blur());
    await keys(page, "p");
    expect((await page.$eval("button.live", (it) => it.textContent)) === "Paused", "p does not pause");
    await keys(page, "p", "?");
    await visit.until("the list of keys", () => document.querySelector("dialog[open]") !== null);
    await keys(page, "Escape");
    await visit.until("the end of the list of keys", () => document.querySelector("dialog[open]") === null);
    await visit.goto(`/console/${approval(task)}`);
    await visit.settled();
    await page.focus("#reason");
    await keys(page, "Tab");
    expect(await page.evaluate(() => document.activeElement.value === "accept"), "the button follows the reason");
    await go(page, "Enter");
    await visit.close();
    const { state } = await read(origin, deciding.ada, approval(task));
    return { figure: `the request is ${state}`, met: state === "answered" };
  },
};

export const noKeyDecides = {
  name: "every single key on an approval page",
  bar: "0 decisions",
  async run(browser, { origin, sessions, tokens, deciding }) {
    const task = await call(origin, tokens.ann, "deploy", { version: "single keys", env: "prod" });
    const visit = await Visit.open(browser, origin, sessions.ada);
    const single = [..."abcdefhijklmnopqrsuvwxyz0123456789", "Enter", "Space", "Delete", "Backspace"];
    for (const key of single) {
      await visit.goto(`/console/${approval(task)}`);
      await keys(visit.page, key);
    }
    await visit.close();
    const { state, votes } = await read(origin, deciding.ada, approval(task));
    return { figure: `${single.length} keys, ${votes.length} votes, the request is ${state}`, met: state === "open" && votes.length === 0 };
  },
};

export const focus = {
  name: "focus of every control",
  bar: "an outline of ≥ 3 pixels, in a useful order, no trap",
  async run(browser, { origin, sessions, states, short }) {
    const visit = await Visit.open(browser, origin, sessions.ada);
    const { page } = visit;
    const wrong = [];
    let controls = 0;
    const pages = states.filter(({ person, press }) => person === "ada" && !press);
    for (const { name, path: at } of pages.filter((_, number) => !short || number % 4 === 0)) {
      await visit.goto(at);
      await keys(page, "Tab");
      const isFirst = await page.evaluate(() => document.querySelector("a.skip") === null || document.activeElement.matches("a.skip"));
      if (!isFirst) wrong.push(`${name}: the first control is not the skip link`);
      for (let count = 0; count < 400; count++) {
        const found = await page.evaluate(() => {
          const it = document.activeElement;
          // After the last control, the focus is at the browser or at the first control again.
          if (it === document.body || it.dataset.seen) return null;
          it.dataset.seen = "yes";
          const { outlineStyle, outlineWidth } = getComputedStyle(it);
          return { html: it.outerHTML.slice(0, 100), outline: outlineStyle !== "none" ? parseFloat(outlineWidth) : 0 };
        });
        if (!found) break;
        controls += 1;
        if (found.outline < 2.9) wrong.push(`${name}: ${found.html}`);
        if (count === 399) wrong.push(`${name}: the focus does not leave the page`);
        await keys(page, "Tab");
      }
    }
    await visit.close();
    return { figure: `${controls} controls, ${wrong.length} wrong${wrong.length ? `; first: ${wrong[0]}` : ""}`, met: wrong.length === 0 };
  },
};
