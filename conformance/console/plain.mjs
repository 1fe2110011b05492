// The console without script, below a path of a proxy, and an answer link that is only opened.

import { createServer, request as send } from "node:http";

import { approval, call, read } from "./mcp.mjs";
import { expect } from "./rows.mjs";
import { Visit } from "./visit.mjs";

export const withoutScript = {
  name: "without script: sign-in, filter, deny with a missing reason, deny, cancel, settings",
  bar: "everything works",
  async run(browser, { origin, tokens, deciding }) {
    const task = await call(origin, tokens.ann, "deploy", { version: "no script", env: "prod" });
    const visit = await Visit.open(browser, origin, null, "no-script");
    const { page } = visit;
    await visit.goto(`/console/${approval(task)}`);
    expect(page.url().includes("/console/in"), "a visitor without a session is not asked to sign in");
    await page.type("#token", deciding.ada);
    await visit.press("button.primary");
    expect(page.url().includes(task), `the sign-in leads to ${page.url()}`);
    expect((await page.$eval("#live", (it) => it.textContent)) === "Refresh", "there is no refresh link");
    await visit.press("button[value=decline]");
    expect((await page.$("#reason-error")) !== null, "a denial without a reason has no error beside the field");
    await page.type("#reason", "not before the freeze is over");
    await visit.press("button[value=decline]");
    const { state } = await read(origin, deciding.ada, approval(task));
    expect(state === "answered", `the request is ${state}`);
    expect((await page.$("button[value=accept]")) === null, "a settled request has a button");
    await visit.goto("/console/tasks");
    await page.select("select[name=state]", "failed");
    await visit.press(".filters button");
    expect(page.url().includes("state=failed"), "the filter is not in the address");
    const other = await call(origin, tokens.ann, "deploy", { version: "to cancel", env: "prod" });
    await visit.goto(`/console/tasks/${other}/cancel`);
    await visit.press("form button");
    const { state: cancelled } = await read(origin, deciding.ada, `tasks/${other}`);
    expect(cancelled === "cancelled", `the task is ${cancelled}`);
    await visit.goto("/console/settings");
    await page.click("input[name=theme][value=dark]");
    await visit.press("button[value=save]");
    expect((await page.$eval("html", (it) => it.dataset.theme)) === "dark", "the theme is not stored");
    await visit.press("button[value=sign-out]");
    expect(page.url().includes("/console/in"), "the sign-out does not end the session");
    await visit.close();
    return { figure: "done", met: visit.defects.length === 0 };
  },
};

/** A proxy that serves the server below a path. */
async function proxy(origin, path) {
  const target = new URL(origin);
  const server = createServer((incoming, outgoing) => {
    if (!incoming.url.startsWith(`${path}/`)) {
      outgoing.writeHead(404).end();
      return;
    }
    const options = { host: target.hostname, port: target.port, method: incoming.method, path: incoming.url.slice(path.length), headers: { ...incoming.headers, host: target.host } };
    const forwarded = send(options, (response) => {
      outgoing.writeHead(response.statusCode, response.headers);
      response.pipe(outgoing);
    });
    forwarded.on("error", () => outgoing.destroy());
    outgoing.on("close", () => forwarded.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return server;
}

export const prefix = {
  name: "below the path /outlive of a proxy",
  bar: "every page, asset and decision works",
  async run(browser, settings) {
    const server = await proxy(settings.origin, "/outlive");
    try {
      return await behind(`http://127.0.0.1:${server.address().port}`, browser, settings);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  },
};

/** Opens pages and approves a call below the path `/outlive` of the origin `outside`. */
async function behind(outside, browser, { origin, sessions, tokens, deciding }) {
  const task = await call(origin, tokens.ann, "deploy", { version: "behind a proxy", env: "prod" });
  const visit = await Visit.open(browser, outside, sessions.ada);
  const failed = [];
  visit.page.on("response", (response) => {
    if (response.status() >= 400 && !response.url().endsWith("/favicon.ico")) failed.push(`${response.status()} ${response.url()}`);
  });
  for (const page of ["", "tasks", "overview", "audit", "settings", `tasks/${task}`, approval(task)]) {
    await visit.goto(`/outlive/console/${page}`);
    const styled = await visit.page.evaluate(() => document.styleSheets.length > 0 && document.querySelector("button.live") !== null);
    if (!styled) failed.push(`${page} has no style or no script`);
  }
  await visit.press("button[value=accept]");
  await visit.close();
  const { state } = await read(origin, deciding.ada, approval(task));
  return { figure: `${failed.length} failures, the request is ${state}${failed.length ? `; first: ${failed[0]}` : ""}`, met: failed.length === 0 && state === "answered" };
}

export const linkWithoutClick = {
  name: "answer link opened in a browser that clicks nothing",
  bar: "0 decisions",
  async run(browser, { origin, link, short, deciding }) {
    const times = short ? 5 : 100;
    const visit = await Visit.open(browser, origin, null);
    for (let count = 0; count < times; count++) await visit.goto(link.path);
    await visit.check("answer-link");
    await visit.close();
    const { state, votes } = await read(origin, deciding.ada, approval(link.task));
    const wrong = visit.defects.length + visit.foreign.length;
    return { figure: `opened ${times} times: ${votes.length} votes, the request is ${state}, ${wrong} defects`, met: state === "open" && votes.length === 0 && wrong === 0 };
  },
};
