// Sign-in with OAuth in Chromium: node oauth.mjs SETTINGS
//
// SETTINGS is JSON: `chromium` and `outlive` are programs, `folder` is for the files of the servers, `screenshots` a
// folder or null. The authorization server is that of `conformance/logins`. Prints one row of the report per line.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { freePorts, serve } from "../logins/processes.mjs";
import { PEOPLE, startProvider } from "../logins/provider.mjs";
import { expect, leg, some } from "./rows.mjs";
import { launch, Visit } from "./visit.mjs";

/** The person who signs in. */
const PERSON = "ann";
/** The name with which the console registers at the authorization server. */
const CLIENT = "Outlive console";
const CALLBACK = "/console/in/callback";
/** The address of a server behind a proxy with TLS. No request reaches it. */
const PUBLIC = "https://console.example";

const { chromium, outlive, folder, screenshots } = JSON.parse(process.argv[2]);
const provider = await startProvider("http://127.0.0.1/callback");
const ports = await freePorts(2);
const [origin, behind] = await Promise.all([start("plain", ports[0], ""), start("public", ports[1], `public_url = "${PUBLIC}"`)]);
const browser = await launch(chromium);
const events = provider.watch(CLIENT);
const count = (what) => events.seen().filter(({ event }) => event === what).length;

/** Starts a server whose callers and people log in. Returns its origin. */
async function start(name, port, address) {
  const server = `http://127.0.0.1:${port}`;
  provider.protect(`${server}/mcp`, { seconds: 600, format: "jwt", alg: "RS256" });
  const file = join(folder, `${name}.toml`);
  writeFileSync(
    file,
    `[server]
listen = "127.0.0.1:${port}"
${address}
[auth]
resource = "${server}/mcp"
issuer = "${provider.issuer}"
scopes = ["mcp"]
[tools.hello]
description = "Says hello."
command = ["echo", "hello"]
`,
  );
  await serve(outlive, ["serve", file], { env: { ...process.env, OUTLIVE_DATA_DIR: join(folder, name) } });
  return server;
}

/** Logs in and agrees at the authorization server. A visit that holds the redirect stays there. */
async function authorize(visit) {
  const { page } = visit;
  const title = async (expected) => {
    const title = await page.title();
    expect(title === expected, `the browser is at "${title}", ${page.url()}, instead of "${expected}"`);
  };
  await title("Log in");
  await page.type("[name=name]", PERSON);
  await page.type("[name=password]", PEOPLE[PERSON]);
  await visit.press("#login");
  await title("Do you agree?");
  if (!visit.holds) return visit.press("#agree");
  await page.click("#agree");
  for (let polls = 0; polls < 500 && !visit.held; polls++) await sleep(20);
  expect(visit.held, "the authorization server does not redirect the browser");
}

/** Returns an address with another value of a parameter. */
function changed(address, name) {
  const url = new URL(address);
  const value = url.searchParams.get(name);
  url.searchParams.set(name, `${value.startsWith("A") ? "B" : "A"}${value.slice(1)}`);
  return url.href;
}

/** The first sign-in: its visit, its redirect, and its cookies. */
const signedIn = {};

await leg("sign-in with OAuth", "inbox with the person's name, PKCE, no token in a URL, page or cookie; HttpOnly, SameSite=Lax", async () => {
  const visit = await Visit.open(browser, origin, null);
  const { page, context } = visit;
  const urls = [];
  page.on("request", (request) => urls.push(request.url()));
  await visit.goto("/console/");
  await visit.check("sign-in-oauth", { heading: "Sign in", screenshots });
  await visit.press("a.primary");
  const signInCookie = (await context.cookies()).find(({ name }) => name === "outlive-in")?.value;
  await authorize(visit);
  expect(page.url() === `${origin}/console/`, `the sign-in leads to ${page.url()}`);
  await visit.check("inbox-oauth", { heading: "Inbox", screenshots });
  const name = (await page.$eval("details.menu summary", (it) => it.textContent)).trim();
  expect(name.includes(PERSON), `the page shows the name "${name}"`);
  const me = await page.evaluate(async () => (await fetch("api/v1/me")).json());
  expect(me.may_decide === true, `the person may not decide: ${JSON.stringify(me)}`);
  const login = new URL(urls.find((url) => url.startsWith(provider.issuer)));
  expect(login.searchParams.get("code_challenge_method") === "S256", `the login has no PKCE: ${login}`);
  const cookies = await context.cookies();
  const session = cookies.find(({ name }) => name === "outlive");
  expect(session?.httpOnly && session.sameSite === "Lax" && !session.secure, `the session cookie is ${JSON.stringify(session)}`);
  const shown = [...urls, ...cookies.map(({ value }) => value), await page.content(), await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))];
  const token = events.lastToken();
  const leaks = shown.filter((text) => text.includes(token) || /[?&#](access_token|refresh_token|id_token|code_verifier)=/.test(text));
  const others = visit.foreign.filter((url) => !url.startsWith(provider.issuer));
  Object.assign(signedIn, { visit, redirect: urls.find((url) => url.startsWith(`${origin}${CALLBACK}?`)), signInCookie, session: session.value });
  const wrong = [...visit.defects, ...leaks.map((text) => `a token: ${text}`), ...others];
  return { figure: `${name}; ${urls.length} addresses, ${cookies.length} cookies, ${wrong.length} defects${some(wrong)}`, met: wrong.length === 0 };
});

await leg("sign-in with OAuth: replayed, changed and foreign redirects", "all rejected with 403, no session", async () => {
  const accepted = [];
  // The server admits five redirects of an address at once; the first sign-in was one of them.
  const attempt = async (what, { page, context }, address) => {
    const response = await page.goto(address, { waitUntil: "load" });
    const isSignedIn = (await context.cookies()).some(({ name }) => name === "outlive");
    if (response.status() !== 403 || isSignedIn) accepted.push(`${what}: ${response.status()}${isSignedIn ? " with a session" : ""}`);
  };
  const first = await Visit.open(browser, origin, null);
  await first.context.setCookie({ name: "outlive-in", value: signedIn.signInCookie, domain: "127.0.0.1", path: "/", httpOnly: true, sameSite: "Lax" });
  await attempt("the redirect of the first sign-in", first, signedIn.redirect);
  const visit = await Visit.open(browser, origin, null);
  visit.holds = CALLBACK;
  await visit.goto("/console/in");
  await visit.press("a.primary");
  await authorize(visit);
  visit.holds = null;
  await attempt("another state", visit, changed(visit.held, "state"));
  const other = await Visit.open(browser, origin, null);
  await other.goto("/console/in");
  await attempt("another browser", other, visit.held);
  await attempt("another code", visit, changed(visit.held, "code"));
  await visit.check("sign-in-failed", { heading: "Sign in", screenshots });
  for (const one of [first, visit, other]) await one.close();
  const grants = count("grant");
  if (grants !== 1) accepted.push(`${grants} grants instead of 1`);
  accepted.push(...visit.defects);
  return { figure: `4 redirects, ${accepted.length} accepted or defects${some(accepted)}`, met: accepted.length === 0 };
});

await leg("sign-in with OAuth: sign-out", "ends the session, revokes its tokens", async () => {
  const { visit, session } = signedIn;
  await visit.goto("/console/settings");
  await visit.press("button[value=sign-out]");
  expect(visit.page.url() === `${origin}/console/in`, `the sign-out leads to ${visit.page.url()}`);
  const left = (await visit.context.cookies()).some(({ name }) => name === "outlive");
  const { status } = await fetch(`${origin}/console/api/v1/me`, { headers: { Cookie: `outlive=${session}` } });
  await visit.close();
  const revoked = count("revoked");
  return { figure: `${left ? "the cookie stays" : "no cookie"}, the old session gets ${status}, ${revoked} revocations`, met: !left && status === 401 && revoked === 1 };
});

await leg("sign-in with OAuth: cookies behind https", "`__Host-`, Path=/, HttpOnly, SameSite=Lax, Secure", async () => {
  // The browser is at the public address; these requests are those of the proxy.
  const started = await fetch(`${behind}/console/in/start`, { redirect: "manual" });
  const visit = await Visit.open(browser, PUBLIC, null);
  visit.holds = CALLBACK;
  await visit.page.goto(started.headers.get("location"), { waitUntil: "load" });
  await authorize(visit);
  await visit.close();
  expect(visit.held.startsWith(`${PUBLIC}${CALLBACK}?`), `the redirect is ${visit.held}`);
  const [first] = started.headers.getSetCookie();
  const headers = { Cookie: first.split(";")[0] };
  const ended = await fetch(`${behind}${CALLBACK}${new URL(visit.held).search}`, { redirect: "manual", headers });
  expect(ended.status === 303, `the redirect was rejected with ${ended.status}`);
  const cookies = [first, ...ended.headers.getSetCookie()];
  expect(cookies.some((cookie) => /^__Host-outlive=[^;]+;/.test(cookie)), `no session cookie: ${cookies.length} others`);
  const attributes = (cookie) => cookie.split(";").map((part) => part.trim());
  const isStrict = (cookie) => cookie.startsWith("__Host-") && ["Path=/", "HttpOnly", "SameSite=Lax", "Secure"].every((it) => attributes(cookie).includes(it));
  const wrong = cookies.filter((cookie) => !isStrict(cookie));
  return { figure: `${cookies.length} cookies, ${wrong.length} with other attributes${some(wrong)}`, met: wrong.length === 0 };
});

await browser.close();
// The servers end with this process.
process.exit(0);
