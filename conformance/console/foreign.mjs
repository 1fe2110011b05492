// Frames and forms of another origin, in Chromium: node foreign.mjs SETTINGS
//
// SETTINGS is JSON: `chromium` is the program, `origin` the server, `link` the path of an answer link, `sessions` the
// session of each person, `tokens` and `deciding` their tokens, `short` whether one kind of frame suffices. Prints one row
// of the report per line.
//
// The other origin is another port of this machine, to which the browser sends the cookies of the console, and another
// name of it, to which the browser sends only some.

import { createServer } from "node:http";

import { approval, call, read } from "./mcp.mjs";
import { expect, leg, some } from "./rows.mjs";
import { launch, Visit } from "./visit.mjs";

const { chromium, origin, link, sessions, tokens, deciding, short } = JSON.parse(process.argv[2]);

/** The pages of the other origin, by their path. */
const pages = new Map([["/inside", "<!doctype html><title>inside</title><h1>inside</h1>"]]);

/** The server of the other origin. */
const server = createServer(({ url }, response) => {
  const page = pages.get(url);
  response.writeHead(page ? 200 : 404, { "Content-Type": "text/html" }).end(page);
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const port = server.address().port;
const OTHERS = { "same site": `http://127.0.0.1:${port}`, "another site": `http://localhost:${port}` };

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");

const document = (html) => `<!doctype html><html lang="en"><title>other</title><main><h1>other</h1>${html}</main></html>`;

/** Opens a page of another origin in a browser that is signed in to the console. */
async function visitOther(browser, other, path, html) {
  pages.set(path, document(html));
  const visit = await Visit.open(browser, OTHERS[other], sessions.ben);
  await visit.goto(path);
  return visit;
}

/** Opens a page with a frame. Returns the text in the frame; null if the browser blocks it. */
async function framedText(browser, other, html) {
  pages.set("/frame", document(html));
  const visit = await Visit.open(browser, OTHERS[other], sessions.ben);
  let isBlocked = false;
  visit.page.on("requestfailed", (request) => {
    isBlocked ||= request.failure()?.errorText === "net::ERR_BLOCKED_BY_RESPONSE";
  });
  await visit.goto("/frame");
  try {
    for (let polls = 0; polls < 500; polls++) {
      // Instead of a blocked page, the frame has one of the browser; an object has no frame then.
      const frame = visit.page.mainFrame().childFrames().find((it) => !it.url().startsWith("chrome-error:"));
      const text = await frame?.evaluate(() => (globalThis.document.readyState === "complete" ? globalThis.document.querySelector("h1")?.textContent : null)).catch(() => null);
      if (text) return text;
      if (isBlocked) return null;
      await new Promise((done) => setTimeout(done, 20));
    }
  } finally {
    await visit.close();
  }
  throw new Error(`the frame shows no page and is not blocked: ${html}`);
}

const FRAMES = {
  iframe: (url) => `<iframe src="${escaped(url)}" title="frame"></iframe>`,
  object: (url) => `<object data="${escaped(url)}" type="text/html"></object>`,
  embed: (url) => `<embed src="${escaped(url)}" type="text/html">`,
};

async function frames(browser) {
  const task = await call(origin, tokens.ann, "deploy", { key: "in a frame" });
  const paths = ["/console/", "/console/tasks", "/console/in", "/console/settings", `/console/${approval(task)}`, link];
  const shown = [];
  let count = 0;
  for (const other of Object.keys(OTHERS)) {
    for (const [element, html] of Object.entries(FRAMES).slice(0, short ? 1 : undefined)) {
      const inside = await framedText(browser, other, html(`${OTHERS[other]}/inside`));
      expect(inside === "inside", `a page that permits frames is not shown in ${element}`);
      for (const path of paths) {
        const text = await framedText(browser, other, html(`${origin}${path}`));
        if (text !== null) shown.push(`${path} in ${element} of ${other}: ${text}`);
        count += 1;
      }
    }
  }
  return { figure: `${count} frames, ${shown.length} shown${some(shown)}`, met: count > 0 && shown.length === 0 };
}

async function forms(browser) {
  const accepted = [], sent = [];
  for (const other of Object.keys(OTHERS)) {
    const task = await call(origin, tokens.ann, "deploy", { key: `form of ${other}` });
    const path = approval(task);
    const own = await Visit.open(browser, origin, sessions.ben);
    await own.goto(`/console/${path}`);
    // A valid token and digest, so that only the origin is wrong.
    const fields = await own.page.$eval("form:has(button[value=accept])", (form) => Object.fromEntries(new FormData(form)));
    expect(fields.form_token && fields.digest, `the page of the request has no form: ${JSON.stringify(fields)}`);
    const inputs = Object.entries({ ...fields, action: "accept" }).map(([name, value]) => `<input type="hidden" name="${name}" value="${escaped(value)}">`);
    const policies = ["", "no-referrer", "unsafe-url"];
    for (const policy of policies) {
      const form = `<meta name="referrer" content="${policy}"><form method="post" action="${escaped(`${origin}/console/${path}`)}">${inputs.join("")}<button>Win a prize</button></form>`;
      const visit = await visitOther(browser, other, "/form", form);
      visit.page.on("request", (request) => {
        if (request.method() === "POST") sent.push(request.url());
      });
      const [response] = await Promise.all([visit.page.waitForNavigation({ waitUntil: "load" }), visit.page.click("button")]);
      if (response.status() < 400) accepted.push(`${other}, referrer "${policy}": ${response.status()}, now at ${visit.page.url()}`);
      await visit.close();
    }
    const { state, votes } = await read(origin, deciding.ada, path);
    if (state !== "open" || votes.length > 0) accepted.push(`${other}: the request is ${state} with ${votes.length} votes`);
    // The same form decides if a page of the console submits it.
    await own.press("button[value=accept]");
    const decided = await read(origin, deciding.ada, path);
    expect(decided.state === "answered", `the form of the console does not work: ${decided.state}`);
    await own.close();
  }
  return { figure: `${sent.length} forms, ${accepted.length} accepted${some(accepted)}`, met: sent.length > 0 && accepted.length === 0 };
}

/** Requests of a script of the other origin, with the cookies of the console. */
async function scripts(browser) {
  const task = await call(origin, tokens.ann, "deploy", { key: "script" });
  const path = approval(task);
  const { digest } = await read(origin, deciding.ada, path);
  const readable = [];
  let count = 0;
  for (const other of Object.keys(OTHERS)) {
    const visit = await visitOther(browser, other, "/script", "");
    const api = `${origin}/console/api/v1`;
    const requests = [
      [`${api}/me`, {}],
      [`${origin}/console/${path}`, {}],
      [`${api}/${path}/answer`, { method: "POST", body: JSON.stringify({ digest, action: "accept" }), headers: { "Content-Type": "text/plain" } }],
      [`${api}/${path}/answer`, { method: "POST", body: JSON.stringify({ digest, action: "accept" }), headers: { "Content-Type": "application/json" } }],
    ];
    for (const [url, options] of requests) {
      const text = await visit.page.evaluate((url, options) => fetch(url, { credentials: "include", ...options }).then((it) => it.text()).catch(() => null), url, options);
      if (text !== null) readable.push(`${other}: ${url} returned ${text.slice(0, 80)}`);
      count += 1;
    }
    await visit.close();
  }
  const { state, votes } = await read(origin, deciding.ada, path);
  if (state !== "open" || votes.length > 0) readable.push(`the request is ${state} with ${votes.length} votes`);
  return { figure: `${count} requests, ${readable.length} readable or counted${some(readable)}`, met: count > 0 && readable.length === 0 };
}

const browser = await launch(chromium);
await leg("attack: pages in frames of another origin, in Chromium", "none is shown", () => frames(browser));
await leg("attack: forms that another origin submits, in Chromium", "all rejected, 0 votes", () => forms(browser));
await leg("attack: scripts of another origin, in Chromium", "nothing is readable, 0 votes", () => scripts(browser));
await browser.close();
server.close();
server.closeAllConnections();
