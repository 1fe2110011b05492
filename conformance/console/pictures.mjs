// Pictures of the console for the documentation, light and dark: node pictures.mjs SETTINGS
//
// SETTINGS is JSON: `chromium` is the program, `origin` the server, `session` the session of a person, `folder` the folder
// of the pictures, `pages` their names, paths and maximum heights, `private` texts of this machine that no picture may
// show. Prints one row of the report per picture.

import { stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";

import { expect, leg } from "./rows.mjs";
import { launch, VARIANTS, Visit } from "./visit.mjs";

const MAX_KILOBYTES = 200;
/** Pixels below the content. */
const MARGIN = 24;

const settings = JSON.parse(process.argv[2]);

/** Matches the name of this machine as a word. */
const MACHINE = new RegExp(`(^|[^\\w-])${hostname().replace(/\W/g, "\\$&")}($|[^\\w-])`);

/**
 * Returns the height of the page until its last content. A page that is higher ends below the last card or row that
 * fits. Runs in the page.
 */
function height(most, margin) {
  const ends = (selector) =>
    [...document.querySelectorAll(selector)].filter((it) => it.checkVisibility()).map((it) => it.getBoundingClientRect().bottom + window.scrollY + margin);
  const all = Math.max(...ends("main :not(svg *)"));
  return Math.ceil(all <= most ? all : Math.max(...ends("main :is(.facts, .card, .row, .buttons, pre)").filter((end) => end <= most)));
}

async function take(visit, page) {
  const response = await visit.goto(page.path);
  expect(response.status() === 200, `${page.path} returned ${response.status()}`);
  await visit.until("live updates", () => document.querySelector("button.live[aria-pressed=true]") !== null);
  const text = await visit.page.evaluate(() => document.body.innerText);
  for (const part of settings.private) expect(!text.includes(part), `the page shows ${part}`);
  expect(!MACHINE.test(text), "the page shows the name of this machine; run the command again, the browser was slow");
  const clip = { x: 0, y: 0, width: VARIANTS[visit.variant].width, height: await visit.page.evaluate(height, page.height, MARGIN) };
  const path = join(settings.folder, `console-${page.name}-${visit.variant}.png`);
  await visit.page.screenshot({ path, clip, captureBeyondViewport: true });
  expect(visit.defects.length === 0, visit.defects.join(" | "));
  const kilobytes = Math.ceil((await stat(path)).size / 1000);
  return { figure: `${clip.width} × ${clip.height} pixels, ${kilobytes} KB`, met: kilobytes <= MAX_KILOBYTES };
}

const browser = await launch(settings.chromium);
for (const variant of ["light", "dark"]) {
  const visit = await Visit.open(browser, settings.origin, settings.session, variant);
  // Icons of running tasks would be in another phase in each picture.
  await visit.page.emulateMediaFeatures([
    { name: "prefers-color-scheme", value: VARIANTS[variant].scheme },
    { name: "prefers-reduced-motion", value: "reduce" },
  ]);
  for (const page of settings.pages) {
    const bar = `≤ ${MAX_KILOBYTES} KB, ≤ ${page.height} pixels high, and no text of this machine`;
    await leg(`picture of ${page.name}, ${variant}`, bar, () => take(visit, page));
  }
  await visit.close();
}
await browser.close();
