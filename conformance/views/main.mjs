// Runs every leg in Chromium: node main.mjs SETTINGS
//
// SETTINGS is JSON: `chromium` and `server` are programs, `pictures` is a folder, `only` are parts of names of legs.
// Writes one line of JSON for each leg to standard output. Everything ends with standard input.

import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { createInterface } from "node:readline";

import { build } from "esbuild";
import puppeteer from "puppeteer-core";

import { LEGS } from "./legs.mjs";
import { servePages } from "./pages.mjs";
import { View } from "./view.mjs";

const { chromium: executable, server: program, pictures, only } = JSON.parse(process.argv[2]);
process.stdin.on("end", () => process.exit(1)).resume();
await mkdir(pictures, { recursive: true });

const bundle = await build({ entryPoints: ["host.mjs"], bundle: true, write: false, format: "iife", conditions: ["browser"], logLevel: "error" });
const pages = await servePages(bundle.outputFiles[0].text);
const server = await serve(program, [pages.host]);
const chromium = await puppeteer.launch({
  executablePath: executable,
  pipe: true,
  // Chromium does not support its sandbox as root. It opens only our pages.
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});

for (const leg of LEGS.filter(({ name }) => only.every((part) => name.includes(part)))) {
  const started = Date.now(), notes = [], note = (text) => notes.push(text);
  let why = await play(leg, note);
  for (let attempt = 1; why && attempt < (leg.attempts ?? 1); attempt++) {
    note(`attempt ${attempt} failed: ${why}`);
    why = await play(leg, note);
  }
  const seconds = ((Date.now() - started) / 1_000).toFixed(1);
  console.log(JSON.stringify({ leg: leg.name, seconds, note: notes.join(", "), why }));
}

await chromium.close();
server.stop();
process.exit(0);

/// Runs a leg in a new page. Returns the error if it fails.
async function play(leg, note) {
  const view = await View.open(chromium, { pages, server: server.address });
  try {
    if (!view.tools.task_result) throw new Error(`\`task_result\` names no view: ${JSON.stringify(view.tools)}`);
    await leg.run(view, { note, pictures });
    const { violations } = await view.watched();
    if (violations.length) throw new Error(`the page violated its policy: ${violations.join(", ")}`);
    if (view.requests.length) throw new Error(`the page made requests: ${view.requests.join(", ")}`);
    return undefined;
  } catch (error) {
    return error.message;
  } finally {
    await view.close();
  }
}

/// Starts the server, which prints its address and ends with its standard input.
async function serve(program, args) {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  process.on("exit", () => child.kill());
  const address = await new Promise((found, failed) => {
    createInterface(child.stdout).once("line", found);
    child.once("exit", (code) => failed(new Error(`the server has ended: ${code}`)));
    child.once("error", failed);
  });
  return { address: address.startsWith("http") ? address : `http://${address}/mcp`, stop: () => child.kill() };
}
