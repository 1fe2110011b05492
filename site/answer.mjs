// Answers input requests on the answer page in Chromium: node answer.mjs SETTINGS
//
// A state of the page fails if axe-core finds a defect, if it scrolls sideways, if the browser reports an error or a
// violated policy, or if it makes a request beside the page itself. The script types into the form with the keyboard.

import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import puppeteer from "puppeteer-core";

const settings = JSON.parse(process.argv[2]);
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const SIZES = {
  light: { scheme: "light", width: 1280, height: 900 },
  dark: { scheme: "dark", width: 1280, height: 900 },
  phone: { scheme: "light", width: 320, height: 640 },
  "phone-dark": { scheme: "dark", width: 320, height: 640 },
};

const browser = await puppeteer.launch({
  executablePath: settings.chromium,
  pipe: true,
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
const defects = [];
let states = 0;

async function answer(view) {
  const page = await browser.newPage();
  const { scheme, width, height } = SIZES[view.name];
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  const fails = (what) => defects.push(`${view.name}: ${what}`);
  page.on("pageerror", (error) => fails(error.message));
  page.on("request", (request) => {
    const own = request.isNavigationRequest() || request.url().endsWith("/favicon.ico");
    if (!own) fails(`a request to ${request.url()}`);
  });
  page.on("console", (message) => {
    // A status of 404 or 422 is the expected reply of some states.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) fails(message.text());
  });

  async function state(name) {
    states += 1;
    if (settings.screenshots) {
      await page.screenshot({ path: join(settings.screenshots, `answer-${name}-${view.name}.png`), fullPage: true });
    }
    const sideways = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    if (sideways > 0) fails(`${name}: scrolls ${sideways} pixels sideways`);
    // Evaluated by the debugger, because the policy of the page permits no script.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
    for (const { id, help, nodes } of violations) {
      fails(`${name}: ${id}: ${help}: ${nodes.length} × ${nodes[0].html.slice(0, 160)}`);
    }
    return page.$eval("h1", (heading) => heading.textContent);
  }

  async function press(value) {
    await Promise.all([page.waitForNavigation(), page.click(`button[value=${value}]`)]);
  }

  async function expect(name, heading) {
    const found = await state(name);
    if (found !== heading) fails(`${name}: the heading is "${found}" instead of "${heading}"`);
  }

  await page.goto(view.form);
  await expect("form", "deploy requests input");
  await press("accept");
  await expect("errors", "deploy requests input");
  const errors = await page.$$eval(".error", (all) => all.length);
  if (errors !== 4) fails(`the empty form has ${errors} errors instead of 4`);
  // The first link of the summary leads to the first field. The rest is typed with the keyboard.
  await page.click(".errors a");
  for (const key of [..."as planned", "Tab", ..."3", "Tab", "Space", "Tab", "ArrowDown", "ArrowDown", "Tab", "Space"]) {
    await page.keyboard.press(key === " " ? "Space" : key);
  }
  await press("accept");
  await expect("sent", "Answer sent");
  await page.goto(view.form);
  await expect("used", "This link does not work");
  await page.goto(settings.unknown);
  await expect("unknown", "This link does not work");
  await page.goto(view.visit);
  await expect("visit", "visit requests input");
  await press("decline");
  await expect("declined", "Declined");
  await page.close();
}

for (const view of settings.views) await answer(view);
await browser.close();
for (const defect of defects) console.error(defect);
console.log(`${states} states in ${settings.views.length} views: ${defects.length} defects`);
process.exit(defects.length === 0 ? 0 : 1);
