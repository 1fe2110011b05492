// Opens every page of the built site in Chromium: node check.mjs CHROMIUM FOLDER ADDRESSES [SCREENSHOTS]
//
// A page fails if axe-core finds a defect, if it scrolls sideways on a phone, or if the browser reports an error.
// The search must find a page. SCREENSHOTS is a folder for pictures of the pages.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { join, normalize } from "node:path";

import puppeteer from "puppeteer-core";

const [chromium, folder, list, screenshots] = process.argv.slice(2);
const addresses = JSON.parse(list);
const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

const TYPES = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml", png: "image/png", json: "application/json" };
const VIEWS = [
  { name: "light", scheme: "light", width: 1280, height: 900 },
  { name: "dark", scheme: "dark", width: 1280, height: 900 },
  { name: "phone", scheme: "light", width: 390, height: 844 },
];

const server = createServer(async (request, response) => {
  const path = decodeURIComponent(new URL(request.url, "http://site").pathname);
  const file = path.endsWith("/") ? `${path}index.html` : /\.\w+$/.test(path) ? path : `${path}.html`;
  try {
    const body = await readFile(join(folder, normalize(file)));
    response.writeHead(200, { "content-type": TYPES[file.split(".").at(-1)] ?? "application/octet-stream" });
    response.end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const origin = `http://127.0.0.1:${server.address().port}`;

const browser = await puppeteer.launch({
  executablePath: chromium,
  pipe: true,
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
const defects = [];

async function tab(view) {
  const page = await browser.newPage();
  page.on("pageerror", (error) => defects.push(`${page.url()} (${view.name}): ${error.message}`));
  page.on("response", (response) => {
    if (response.status() >= 400) defects.push(`${page.url()} (${view.name}): ${response.status()} for ${response.url()}`);
  });
  await page.setViewport({ width: view.width, height: view.height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: view.scheme }]);
  return page;
}

async function check(view) {
  const page = await tab(view);
  for (const address of addresses) {
    await page.goto(origin + address, { waitUntil: "load" });
    if (screenshots) {
      await page.screenshot({ path: join(screenshots, `${address.replaceAll("/", "_")}-${view.name}.png`) });
    }
    if (view.name === "phone") {
      const sideways = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (sideways > 0) defects.push(`${address} (phone): scrolls ${sideways} pixels sideways`);
      continue;
    }
    await page.addScriptTag({ path: axe });
    const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
    for (const { id, help, nodes } of violations) {
      defects.push(`${address} (${view.name}): ${id}: ${help}: ${nodes.length} × ${nodes[0].html.slice(0, 160)}`);
    }
  }
  await page.close();
}

for (const view of VIEWS) await check(view);

const page = await tab(VIEWS[0]);
await page.goto(origin + addresses[0], { waitUntil: "networkidle0" });
await page.click(".VPNavBarSearch button");
try {
  await page.waitForSelector("#localsearch-input", { timeout: 10_000 });
  await page.type("#localsearch-input", "lease");
  await page.waitForSelector(".VPLocalSearchBox .result", { timeout: 10_000 });
} catch {
  defects.push("the search finds nothing for `lease`");
}

await browser.close();
server.close();
for (const defect of defects) console.error(defect);
console.log(`${addresses.length} pages, ${VIEWS.length} views each: ${defects.length} defects`);
process.exit(defects.length === 0 ? 0 : 1);
