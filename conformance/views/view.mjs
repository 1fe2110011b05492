// A person in front of the view: reads and clicks what the page shows.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

/// Only a failing test waits this long.
const PATIENCE = 30_000;
const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/// Colors of a host, as `light-dark` values for both themes.
export const PALETTE = {
  "--color-background-primary": "light-dark(#fffdf8, #262624)",
  "--color-background-secondary": "light-dark(#f4f1e8, #30302e)",
  "--color-background-tertiary": "light-dark(#e9e5d8, #3f3e3a)",
  "--color-text-primary": "light-dark(#141413, #faf9f5)",
  "--color-text-secondary": "light-dark(#55534b, #c2c0b6)",
  "--color-border-primary": "light-dark(#dbd7c9, #45443f)",
  "--border-radius-md": "10px",
};

export class View {
  /// Requests of the page, and violations of its content security policy.
  requests = [];
  #page;

  static async open(chromium, { pages, server, capabilities }) {
    const page = await chromium.newPage();
    const view = new View(page);
    page.setDefaultTimeout(PATIENCE);
    page.on("request", (request) => {
      const isView = request.frame()?.name() === "view" && !/^(data|about):/.test(request.url());
      if (isView) view.requests.push(request.url());
    });
    page.on("pageerror", (error) => view.requests.push(`error: ${error.message}`));
    await page.evaluateOnNewDocument(watch);
    await page.goto(pages.host);
    view.tools = await page.evaluate((address, can) => globalThis.host.connect(address, can), server, capabilities);
    view.sandbox = pages.sandbox;
    return view;
  }

  constructor(page) {
    this.#page = page;
  }

  /// Calls a tool as the model does.
  call(name, args = {}) {
    return this.#page.evaluate((name, args) => globalThis.host.call(name, args), name, args);
  }

  /// Calls a slow tool and shows the view of its task. Returns the task ID.
  async follow(tool, args = {}, { theme = "light", width = 720, palette } = {}) {
    const pending = await this.call(tool, args);
    const task = pending.structuredContent?.task?.id;
    if (!task) throw new Error(`\`${tool}\` returned no task: ${JSON.stringify(pending).slice(0, 400)}`);
    await this.theme(theme);
    await this.#page.setViewport({ width: width + 50, height: 900, deviceScaleFactor: 2 });
    const styles = palette ? { variables: palette } : undefined;
    const options = { sandbox: this.sandbox, width, hostContext: { theme, styles, locale: "en-US", timeZone: "UTC", displayMode: "inline" } };
    await this.#page.evaluate((task, options) => globalThis.host.show(task, options), task, options);
    return task;
  }

  theme(theme) {
    return this.#page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  }

  async setContext(context) {
    if (context.theme) await this.theme(context.theme);
    await this.#page.evaluate((context) => globalThis.host.setContext(context), context);
  }

  /// The records of the host.
  seen() {
    return this.#page.evaluate(() => globalThis.host.seen);
  }

  teardown() {
    return this.#page.evaluate(() => globalThis.host.teardown());
  }

  get frame() {
    const frame = this.#page.frames().find((it) => it.name() === "view");
    if (!frame) throw new Error("the sandbox has not loaded the view");
    return frame;
  }

  /// The visible text of an element, or null.
  text(selector) {
    return this.frame.evaluate((selector) => {
      const element = document.querySelector(selector);
      return element?.checkVisibility() ? element.innerText : null;
    }, selector);
  }

  evaluate(...args) {
    return this.frame.evaluate(...args);
  }

  /// Waits until the function returns a true value in the view, and returns this value.
  async until(what, fn, ...args) {
    try {
      const handle = await this.frame.waitForFunction(fn, { polling: 20, timeout: PATIENCE }, ...args);
      return await handle.jsonValue();
    } catch (error) {
      const text = await this.frame.evaluate(() => document.body.innerText).catch(() => "");
      throw new Error(`${what}: ${error.message}; the page shows: ${text.slice(0, 600)}`);
    }
  }

  status(status) {
    return this.until(`status ${status}`, (status) => document.body.dataset.status === status, status);
  }

  /// Clicks the button with this text.
  async click(text) {
    const find = (text) => [...document.querySelectorAll("button")].find((it) => it.innerText === text && it.checkVisibility());
    await this.until(`button ${text}`, find, text);
    const button = await this.frame.evaluateHandle(find, text);
    await button.click();
  }

  /// Types into the field with this label, after its text is deleted.
  async type(label, text) {
    const field = await this.frame.evaluateHandle((label) => {
      const found = [...document.querySelectorAll("label")].find((it) => it.innerText.startsWith(label));
      return found.control ?? document.getElementById(found.htmlFor);
    }, label);
    await field.type(text);
  }

  press(key) {
    return this.#page.keyboard.press(key);
  }

  /// Fails if axe-core finds a defect, or if the page scrolls sideways.
  async check(where) {
    await this.frame.evaluate(AXE);
    const { violations } = await this.frame.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
    const defects = violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.length} × ${nodes[0].html.slice(0, 200)}`);
    const sideways = await this.frame.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    if (sideways > 0) defects.push(`scrolls ${sideways} pixels sideways`);
    if (defects.length) throw new Error(`${where}: ${defects.join("; ")}`);
  }

  /// Saves a picture for people.
  async picture(folder, name) {
    await new Promise((done) => setTimeout(done, 450));
    const frame = await this.#page.$("main iframe");
    await frame.screenshot({ path: join(folder, `${name}.png`) });
  }

  /// The longest time without a frame, in milliseconds, and violations of the policy, since the page was loaded.
  watched() {
    return this.frame.evaluate(() => globalThis.watched);
  }

  async close() {
    await this.#page.close();
  }
}

/// Runs in every frame before its scripts.
function watch() {
  const watched = { gap: 0, violations: [], ran: false };
  globalThis.watched = watched;
  document.addEventListener("securitypolicyviolation", (event) => watched.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  let last;
  const frame = (now) => {
    if (last !== undefined) watched.gap = Math.max(watched.gap, now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}
