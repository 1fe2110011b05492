// People with a browser: a headless Chromium, in which somebody types and clicks.
//
// Each client has a seat of its own, and each person there cookies of their own. Clients bring their pages by way of
// `open.mjs`, which is what `BROWSER` names; a page that nobody is expected to open is a mistake.

import { createServer } from "node:http";

import puppeteer from "puppeteer-core";

import { PEOPLE } from "./provider.mjs";

/// Only what fails waits so long.
const PATIENCE = 90_000;

export async function startBrowser(executable, folder) {
  const chromium = await puppeteer.launch({
    executablePath: executable,
    // It ends when its pipe does, however this process ends.
    pipe: true,
    userDataDir: folder,
    // Chromium refuses to have a sandbox where it is root. It sees no page but ours.
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
  });
  const seats = new Map();
  const desk = createServer(async (request, response) => {
    let url = "";
    for await (const part of request.setEncoding("utf8")) url += part;
    response.end();
    await seats.get(request.url.slice(1))?.opened(url);
  });
  await new Promise((listening) => desk.listen(0, "127.0.0.1", listening));
  return {
    version: await chromium.version(),
    seat(name) {
      const address = `http://127.0.0.1:${desk.address().port}/${name}`;
      if (!seats.has(name)) seats.set(name, new Seat(chromium, address));
      return seats.get(name);
    },
    async stop() {
      desk.close();
      await chromium.close();
    },
  };
}

class Seat {
  /// Pages that nobody was expected to open.
  unexpected = [];
  #people = new Map();
  #expected = [];
  #chromium;

  constructor(chromium, address) {
    this.#chromium = chromium;
    this.address = address;
  }

  /// Somebody will open a page, after those that are expected already, and answers there. Resolves with the pages that were seen.
  expect(person, answer = "agree") {
    const done = Promise.withResolvers();
    // Whoever waits is told; nobody may be waiting yet.
    done.promise.catch(() => {});
    setTimeout(() => done.reject(new Error("no page was opened")), 2 * PATIENCE).unref();
    this.#expected.push({ person, answer, done });
    return done.promise;
  }

  /// A client has opened a page.
  async opened(url) {
    const expected = this.#expected.shift();
    if (!expected) return void this.unexpected.push(url);
    const { person, answer, done } = expected;
    if (!this.#people.has(person)) this.#people.set(person, this.#chromium.createBrowserContext());
    await visit(await this.#people.get(person), url, person, answer).then(done.resolve, done.reject);
  }

  /// Nobody opens anything any more, and nobody is remembered.
  async forget() {
    this.#expected = [];
    this.unexpected = [];
    const contexts = await Promise.all(this.#people.values());
    this.#people.clear();
    for (const context of contexts) await context.close();
  }
}

/// Goes where a page leads, until nothing is to be typed or clicked.
async function visit(context, url, person, answer) {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const seen = [];
  try {
    await page.goto(url);
    for (;;) {
      const title = await page.title();
      seen.push({ title, text: await page.$eval("body", (body) => body.innerText), at: page.url() });
      if (seen.length > 9) throw new Error("the pages lead in circles");
      if (title === "Log in") {
        await page.type("[name=name]", person);
        await page.type("[name=password]", PEOPLE[person]);
        await Promise.all([page.waitForNavigation(), page.click("#login")]);
      } else if (title === "Do you agree?") {
        await Promise.all([page.waitForNavigation(), page.click(`#${answer}`)]);
      } else if (title === "Allow access?") {
        await Promise.all([page.waitForNavigation(), page.click("[value=allow]")]);
      } else {
        return seen;
      }
    }
  } catch (error) {
    throw new Error(`the browser, at ${seen.map((it) => it.title).join(", ") || url}: ${error.message}`);
  } finally {
    await page.close();
  }
}
