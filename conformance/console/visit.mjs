// A page of the console in Chromium, with the checks that hold for every page and state.

import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import puppeteer from "puppeteer-core";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The rules of axe-core that the pages must keep. */
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** The ways in which people see the pages. A browser at 200 % has half as many pixels. */
export const VARIANTS = {
  light: { scheme: "light", width: 1280, height: 900 },
  dark: { scheme: "dark", width: 1280, height: 900 },
  phone: { scheme: "light", width: 390, height: 844 },
  "phone-dark": { scheme: "dark", width: 390, height: 844 },
  zoom: { scheme: "light", width: 640, height: 450, scale: 2 },
  "no-script": { scheme: "light", width: 1280, height: 900, noScript: true },
};

/** Variants of a short run: both schemes and both widths, with script and without. */
export const FEW = ["phone-dark", "no-script"];

/** Starts Chromium. */
export async function launch(executablePath) {
  // Chromium does not support its sandbox as root. It opens only our pages.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const browser = await puppeteer.launch({ executablePath, pipe: true, args });
  // Calls to a browser that is gone may never return.
  browser.process().once("exit", (code, signal) => {
    const fails = () => {
      console.error(`Chromium ended with ${signal ?? code} while its pages were in use`);
      process.exit(1);
    };
    setTimeout(fails, 20_000).unref();
  });
  return browser;
}

export class Visit {
  /** End of a path that the browser cannot load. */
  blocked = null;
  /** End of a path that the browser does not open. It stays on its page, and `held` is the address. */
  holds = null;
  held = null;
  /** Path and HTML of a page that the browser opened before. The server is not asked for it again. */
  stored = null;

  /** Opens a browser tab of one person. */
  static async open(browser, origin, session, variant = "light") {
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    const { scheme, width, height, scale = 1, noScript = false } = VARIANTS[variant];
    await page.setViewport({ width, height, deviceScaleFactor: scale });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    if (session) {
      await context.setCookie({ name: "outlive", value: session, domain: "127.0.0.1", path: "/", httpOnly: true, sameSite: "Lax" });
    }
    const visit = new Visit(context, page, origin, variant);
    // Pages have no inline script, so a page without this file has none.
    if (noScript) visit.blocked = "/console.js";
    await visit.#watch();
    return visit;
  }

  constructor(context, page, origin, variant) {
    Object.assign(this, { context, page, origin, variant, defects: [], foreign: [], reports: [] });
  }

  async #watch() {
    const { page } = this;
    page.on("pageerror", (error) => this.fails(`script error: ${error.message}`));
    page.on("dialog", async (dialog) => {
      this.fails(`a dialog: ${dialog.message()}`);
      await dialog.dismiss();
    });
    page.on("console", (message) => {
      // A status of 403 to 503 is the expected response of some states.
      if (message.type() === "error" && !/Failed to load resource/.test(message.text())) this.reports.push(message.text());
    });
    await page.setRequestInterception(true);
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (url.origin !== this.origin) this.foreign.push(request.url());
      if (this.blocked && url.pathname.endsWith(this.blocked)) return request.abort();
      if (this.holds && url.pathname.endsWith(this.holds)) {
        this.held = request.url();
        // A response without content does not replace the page.
        return request.respond({ status: 204 });
      }
      if (this.stored?.path === url.pathname && request.isNavigationRequest() && request.method() === "GET") {
        return request.respond({ status: 200, contentType: "text/html; charset=utf-8", body: this.stored.html });
      }
      return request.continue();
    });
  }

  fails(defect) {
    this.defects.push(`${this.variant}: ${defect}`);
  }

  async goto(path) {
    // The stream of hints stays open, so the network is never idle.
    return this.page.goto(`${this.origin}${path}`, { waitUntil: "load" });
  }

  /** Checks the state that the page shows. */
  async check(name, { heading, screenshots } = {}) {
    const { page } = this;
    if (screenshots) {
      await page.screenshot({ path: join(screenshots, `console-${name}-${this.variant}.png`), fullPage: true });
    }
    const found = await page.evaluate(() => ({
      headings: [...document.querySelectorAll("h1")].map((it) => it.textContent.trim()),
      title: document.title,
      sideways: document.documentElement.scrollWidth - window.innerWidth,
      language: document.documentElement.lang,
      hasMain: document.querySelectorAll("main").length,
      hasSkip: document.querySelector("header.head") === null || document.querySelector("a.skip") !== null,
    }));
    if (found.headings.length !== 1) this.fails(`${name}: ${found.headings.length} headings of level 1`);
    if (heading && !found.headings[0]?.includes(heading)) this.fails(`${name}: the heading is "${found.headings[0]}" instead of "${heading}"`);
    if (!found.title || found.language !== "en" || found.hasMain !== 1 || !found.hasSkip) this.fails(`${name}: title, language, main or skip link is missing`);
    if (found.sideways > 0) this.fails(`${name}: scrolls ${found.sideways} pixels sideways`);
    // The reports of the page itself, before the checks below run in it.
    for (const report of this.reports.splice(0)) this.fails(`${name}: ${report}`);
    // Evaluated by the debugger, because the policy of the page permits no other script.
    await page.evaluate(axe);
    const violations = await page.evaluate(async (rules) => {
      const { violations } = await globalThis.axe.run(document, { runOnly: { type: "tag", values: rules }, resultTypes: ["violations"] });
      return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.length} × ${nodes[0].html.slice(0, 160)}`);
    }, RULES);
    for (const violation of violations) this.fails(`${name}: ${violation}`);
    this.reports.length = 0;
  }

  /** Waits until a function returns a value in the page, and returns it with the milliseconds. */
  async until(what, test, timeout = 15_000, ...args) {
    const started = Date.now();
    while (Date.now() - started < timeout) {
      // The page may be loading.
      const found = await this.page.evaluate(test, ...args).catch(() => null);
      if (found) return { found, millis: Date.now() - started };
      await new Promise((done) => setTimeout(done, 20));
    }
    throw new Error(`${what} did not happen within ${timeout} ms`);
  }

  /**
   * Waits until the page has stopped replacing its parts. A page that was opened within seconds of a change loads them
   * once more, and an element of the first version is then detached.
   */
  async settled() {
    await this.page.evaluate(
      () =>
        new Promise((done) => {
          setTimeout(done, 5_000);
          let timer = setTimeout(done, 800);
          new MutationObserver(() => {
            clearTimeout(timer);
            timer = setTimeout(done, 800);
          }).observe(document.body, { childList: true, subtree: true });
        }),
    );
  }

  /** Presses a button and waits for the next page. Returns its response. */
  async press(selector) {
    await this.settled();
    const [response] = await Promise.all([this.page.waitForNavigation({ waitUntil: "load" }), this.page.click(selector)]);
    return response;
  }

  async close() {
    await this.context.close();
  }
}
