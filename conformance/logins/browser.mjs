// Users with a browser: a headless Chromium with scripted typing and clicking.
//
// Each client has its own browser context, and each user there has separate cookies. Clients open their pages through
// `open.mjs`, which `BROWSER` names. An unexpected page is an error.

import { createServer } from "node:http";

import puppeteer from "puppeteer-core";

import { PEOPLE } from "./provider.mjs";

/// Only a failing test waits this long.
const PATIENCE = 90_000;

export async function startBrowser(executable, folder) {
  const chromium = await puppeteer.launch({
    executablePath: executable,
    // Chromium ends with its pipe, however this process ends.
    pipe: true,
    userDataDir: folder,
    // Chromium does not support its sandbox as root. It opens only our pages.
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
  /// Unexpected pages.
  unexpected = [];
  #people = new Map();
  #expected = [];
  #chromium;

  constructor(chromium, address) {
    this.#chromium = chromium;
    this.address = address;
  }

  /// Expects a page after those that are already expected, and acts on it. Resolves with the visited pages.
  expect(person, answer = "agree") {
    const done = Promise.withResolvers();
    // The rejection may come before the caller awaits it.
    done.promise.catch(() => {});
    setTimeout(() => done.reject(new Error("no page was opened")), 2 * PATIENCE).unref();
    this.#expected.push({ person, answer, done });
    return done.promise;
  }

  /// Handles a page that a client opened.
  async opened(url) {
    const expected = this.#expected.shift();
    if (!expected) return void this.unexpected.push(url);
    const { person, answer, done } = expected;
    if (!this.#people.has(person)) this.#people.set(person, this.#chromium.createBrowserContext());
    await visit(await this.#people.get(person), url, person, answer).then(done.resolve, done.reject);
  }

  /// Rejects all further pages and deletes all cookies.
  async forget() {
    this.#expected = [];
    this.unexpected = [];
    const contexts = await Promise.all(this.#people.values());
    this.#people.clear();
    for (const context of contexts) await context.close();
  }
}

/// Follows a page until there is nothing to type or click.
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
