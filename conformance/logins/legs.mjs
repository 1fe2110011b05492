// The legs, with the expected observations of the client, of the user in the browser, and of the authorization
// server.

import assert from "node:assert/strict";

const MODERN = "2026-07-28";
const LEGACY = "2025-11-25";
const ALL = ["program", "library", "TypeScript", "Python"];

export const LEGS = [
  { name: "login, 2026-07-28", clients: ALL, play: login("plain", MODERN, "ann") },
  { name: "login, 2025-11-25", clients: ALL, play: login("plain", LEGACY, "ben") },
  { name: "login to `outlive serve`", clients: ALL, play: loginToProgram },
  { name: "opaque token, asked about", clients: ALL, play: login("asking", MODERN, "ann") },
  { name: "token expires, is renewed", clients: ALL, play: renewal },
  { name: "more scopes, agreed to later", clients: ALL, play: stepUp },
  { name: "bound token (DPoP)", clients: ["library", "TypeScript"], play: bound },
  { name: "the user refuses", clients: ALL, play: refusal },
  { name: "logout revokes", clients: ["program", "library"], play: logout },
  { name: "login by way of our proxy", clients: ALL, play: loginByProxy },
  { name: "not admitted by our proxy", clients: ["program", "TypeScript"], play: notAdmitted },
  { name: "token for another server", clients: ["program"], play: elsewhere },
];

/// The user logs in and consents, and the tool returns that user.
function login(where, version, person) {
  return async (stage, client) => {
    const url = stage.servers[where];
    await isTurnedAway(url);
    const pages = stage.browser.expect(person);
    const lines = await client.play(stage, version, url, ["whoami"]);
    isCalledBy(stage, said(lines, "whoami"), person, ["mcp"]);
    hasLoggedInAndAgreed(await pages, client, [`mcp at ${url}`]);
    assert.equal(count(stage, { event: "registration", client: client.name }), 1, "registrations");
    assert.equal(count(stage, { event: "authorization" }), 1, "logins");
    assert.equal(count(stage, { event: "grant", type: "authorization_code", resource: url, kind: "Bearer" }), 1, "grants");
    hasNoErrors(stage);
  };
}

/// The same with `outlive serve`, whose tools are commands.
async function loginToProgram(stage, client) {
  const url = stage.servers.program;
  await isTurnedAway(url);
  const pages = stage.browser.expect("ann");
  const lines = await client.play(stage, MODERN, url, ["hello"]);
  assert.match(said(lines, "hello"), /hello from a command/);
  hasLoggedInAndAgreed(await pages, client, [`mcp at ${url}`]);
  hasNoErrors(stage);
}

/// The provider has one client, our proxy. Clients register with the proxy, users consent there, and the proxy issues the token.
async function loginByProxy(stage, client) {
  const url = stage.servers.proxy;
  const pages = stage.browser.expect("ann");
  const lines = await client.play(stage, MODERN, url, ["whoami"]);
  isCalledBy(stage, said(lines, "whoami"), "ann", ["mcp"], new URL(url).origin);
  const [allow, login, agree, end, ...none] = await pages;
  assert.deepEqual([allow, login, agree].map((page) => page.title), ["Allow access?", "Log in", "Do you agree?"]);
  assert.ok(allow.text.includes(`${client.name} wants to use A protected server on your behalf.`), allow.text);
  assert.ok(login.text.includes("The proxy wants you to log in"), login.text);
  assert.match(end.text, /You may close this page/);
  assert.deepEqual(none, []);
  assert.deepEqual(stage.provider.seen(), [], "the provider knows more than one client");
}

/// The provider accepts the user, but our proxy does not.
async function notAdmitted(stage, client) {
  const pages = stage.browser.expect("ben");
  const lines = await client.play(stage, MODERN, stage.servers.proxy, ["whoami"]);
  assert.match(lines.map((line) => line.error ?? "").join(), /access_denied/);
  assert.equal((await pages).length, 4);
}

/// A token is valid for six seconds. There is one login, and the principal stays the same.
async function renewal(stage, client) {
  const url = stage.servers.brief;
  const pages = stage.browser.expect("ann");
  const lines = await client.play(stage, MODERN, url, ["whoami", "7", "whoami"]);
  const [before, after] = lines.filter((line) => line.tool === "whoami").map((line) => said([line], "whoami"));
  isCalledBy(stage, after, "ann", ["mcp"]);
  assert.equal(after, before);
  hasLoggedInAndAgreed(await pages, client, [`mcp at ${url}`]);
  assert.equal(count(stage, { event: "authorization" }), 1, "logins");
  assert.ok(count(stage, { event: "grant", type: "refresh_token", resource: url }) >= 1, "nothing was renewed");
  hasNoErrors(stage);
}

/// A tool needs an additional scope. A logged-in user is asked only for that scope, and the call succeeds.
async function stepUp(stage, client) {
  const url = stage.servers.plain;
  const [first, second] = [stage.browser.expect("ann"), stage.browser.expect("ann")];
  const steps = client.name.includes("command line") ? ["terminal", "whoami", "write"] : ["whoami", "write"];
  const lines = await client.play(stage, MODERN, url, steps);
  isCalledBy(stage, said(lines, "whoami"), "ann", ["mcp"]);
  assert.doesNotMatch(said(lines, "whoami"), /write/);
  isCalledBy(stage, said(lines, "write"), "ann", ["mcp", "write"]);
  hasLoggedInAndAgreed(await first, client, [`mcp at ${url}`]);
  const [agree, end, ...none] = await second;
  assert.equal(agree.title, "Do you agree?");
  isWanted(agree, client, [`write at ${url}`]);
  assert.match(end.text, /You may close this page/);
  assert.deepEqual(none, []);
  assert.equal(count(stage, { event: "registration" }), 1, "registrations");
  hasNoErrors(stage);
}

/// The token is bound to a key of the client, which proves possession to both servers, with their nonces.
async function bound(stage, client) {
  const url = stage.servers.proving;
  const pages = stage.browser.expect("ann");
  const lines = await client.play(stage, MODERN, url, ["whoami", "whoami"], { DPOP: "1" });
  isCalledBy(stage, said(lines, "whoami"), "ann", ["mcp"]);
  assert.equal(lines.filter((line) => line.text).length, 2, "calls");
  hasLoggedInAndAgreed(await pages, client, [`mcp at ${url}`]);
  assert.equal(count(stage, { event: "grant", resource: url, kind: "DPoP" }), 1, "grants of bound tokens");
  hasNoErrors(stage, ["use_dpop_nonce"]);
}

/// A user who does not consent is not logged in, and the client reports that with a remedy.
async function refusal(stage, client) {
  const url = stage.servers.plain;
  const pages = stage.browser.expect("ann", "refuse");
  const lines = await client.play(stage, MODERN, url, ["whoami"]);
  const why = lines.map((line) => line.error ?? "").join("\n");
  assert.ok(!lines.some((line) => line.text), `it was called all the same: ${JSON.stringify(lines)}`);
  assert.match(why, /access_denied/);
  if (client.name.startsWith("Outlive")) {
    assert.match(why, /the user has refused/);
    assert.match(why, /log in again|try again|agree/, `no next step: ${why}`);
  }
  if (client.name.includes("command line")) assert.notEqual(lines.at(-1).code, 0);
  const seen = await pages;
  assert.deepEqual(seen.map((page) => page.title).slice(0, 2), ["Log in", "Do you agree?"]);
  assert.equal(count(stage, { event: "grant" }), 0, "grants");
  hasNoErrors(stage, ["access_denied"]);
}

/// After a logout the tokens are invalid on both servers.
async function logout(stage, client) {
  const url = stage.servers.asking;
  const pages = stage.browser.expect("ann");
  const lines = await client.play(stage, MODERN, url, ["whoami", "logout"]);
  isCalledBy(stage, said(lines, "whoami"), "ann", ["mcp"]);
  assert.ok(lines.some((line) => line.logout === true || line.text?.includes('"loggedOut":true')), JSON.stringify(lines));
  await pages;
  assert.equal(count(stage, { event: "revoked", client: client.name }), 1, "revoked grants");
  // The server introspects each token, so it notices immediately.
  const token = stage.provider.lastToken();
  const { status, challenge } = await ask(url, token);
  assert.equal(status, 401);
  assert.match(challenge, /error="invalid_token"/);
  hasNoErrors(stage);
}

/// A valid token of the same issuer for another server: rejected here, accepted there.
async function elsewhere(stage, client) {
  const [here, there] = [stage.servers.plain, stage.servers.program];
  await Promise.all([stage.browser.expect("ann"), client.play(stage, MODERN, there, ["hello"])]);
  const token = stage.provider.lastToken();
  assert.equal((await ask(there, token)).status, 200);
  const { status, challenge } = await ask(here, token);
  assert.equal(status, 401);
  assert.match(challenge, /error="invalid_token"/);
  assert.match(challenge, /resource_metadata="/);
}

/// A client without a token gets the URL of the authorization server.
async function isTurnedAway(url) {
  const { status, challenge } = await ask(url);
  assert.equal(status, 401);
  const [, metadata] = /^Bearer .*resource_metadata="([^"]+)"/.exec(challenge) ?? assert.fail(challenge);
  assert.match(challenge, /scope="mcp"/);
  const document = await (await fetch(metadata)).json();
  assert.equal(document.resource, url);
}

/// A plain request, with or without a token.
async function ask(url, token) {
  const meta = { "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {} };
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": MODERN,
    "mcp-method": "tools/list",
  };
  if (token) headers.authorization = `Bearer ${token}`;
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: meta } });
  const response = await fetch(url, { method: "POST", headers, body });
  await response.text();
  return { status: response.status, challenge: response.headers.get("www-authenticate") ?? "" };
}

function said(lines, tool) {
  const line = lines.find((it) => it.tool === tool) ?? assert.fail(`\`${tool}\` was not called: ${JSON.stringify(lines)}`);
  return line.text ?? assert.fail(`\`${tool}\`: ${line.error}`);
}

function isCalledBy(stage, text, person, scopes, by = stage.provider.issuer) {
  const [principal, granted] = text.split(" with ");
  const [issuer, subject, client] = principal.split("|");
  assert.deepEqual([issuer, subject], [by, person], text);
  assert.ok(client, "the caller's client has no name");
  for (const scope of scopes) assert.ok(granted.split(" ").includes(scope), `${text} lacks ${scope}`);
}

function hasLoggedInAndAgreed(pages, client, wanted) {
  assert.deepEqual(pages.map((page) => page.title).slice(0, 2), ["Log in", "Do you agree?"]);
  assert.ok(pages[0].text.includes(`${client.name} wants you to log in`), pages[0].text);
  isWanted(pages[1], client, wanted);
  assert.equal(pages.length, 3);
  assert.match(pages[2].at, /^http:\/\/127\.0\.0\.1:\d+\/callback\?/);
  assert.match(pages[2].text, /You may close this page/);
}

function isWanted(page, client, wanted) {
  const [who, ...list] = page.text.split("\n").map((line) => line.trim()).filter((line) => line && line !== page.title);
  assert.equal(who, `${client.name} wants:`);
  assert.deepEqual(list.filter((line) => line.includes(" at ")), wanted);
}

function count(stage, what) {
  const fits = (it) => Object.entries(what).every(([name, value]) => it[name] === value);
  return stage.provider.seen().filter(fits).length;
}

function hasNoErrors(stage, expected = []) {
  const errors = stage.provider.seen().filter((it) => it.event === "error" && !expected.includes(it.error));
  assert.deepEqual(errors, [], "the authorization server has refused something");
  assert.deepEqual(stage.browser.unexpected, [], "an unexpected page was opened");
}
