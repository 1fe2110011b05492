// Runs all legs: `node main.mjs SETTINGS`, where SETTINGS is JSON with the required programs. Prints one line of JSON
// per leg and client: the error, or null. `cargo xtask logins` reads them.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startBrowser } from "./browser.mjs";
import { clients } from "./clients.mjs";
import { LEGS } from "./legs.mjs";
import { freePorts, serve } from "./processes.mjs";
import { ASKING, PROXY, startProvider } from "./provider.mjs";

const settings = { ...JSON.parse(process.argv[2]), node: process.execPath, here: import.meta.dirname };
const root = mkdtempSync(join(tmpdir(), "outlive-logins-"));
// All processes end with this one, however it ends.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(1));
process.stdin.resume().on("end", () => process.exit(1));
process.on("exit", () => rmSync(root, { recursive: true, force: true, maxRetries: 3 }));

const ports = await freePorts(6);
const provider = await startProvider(`http://127.0.0.1:${ports[0]}/callback`);
const [browser, servers] = await Promise.all([startBrowser(settings.chromium, join(root, "browser")), startServers()]);
const versions = ["oidc-provider", "@modelcontextprotocol/client"].map((it) => `${it} ${versionOf(it)}`);
print({ with: [browser.version, ...versions].join(", "), legs: LEGS.map((leg) => leg.name) });
const opener = join(root, "browse");
writeFileSync(opener, `#!/bin/sh\nexec '${settings.node}' '${join(settings.here, "open.mjs")}' "$1"\n`, { mode: 0o755 });

const chosen = ({ name, clients }, column) =>
  clients.includes(column) && (settings.only ?? []).every((it) => `${name}, ${column}`.includes(it));
await Promise.all(Object.entries(clients(settings)).map(playAll));
await browser.stop();
process.exit(0);

/// Runs all legs of one client in sequence. The clients run in parallel.
async function playAll([column, client]) {
  const seat = browser.seat(column);
  for (const [number, leg] of LEGS.entries()) {
    if (!chosen(leg, column)) continue;
    const folder = join(root, `${column}-${number}`);
    mkdirSync(folder);
    const data = { OUTLIVE_DATA_DIR: join(folder, "data"), OUTLIVE_KEYRING: "off" };
    const env = { ...process.env, ...data, BROWSER: opener, LOGINS_BROWSER: seat.address };
    const stage = { provider: provider.watch(client.name), browser: seat, servers, folder, env };
    const begun = Date.now();
    const why = await leg.play(stage, client).then(() => null, (error) => explained(error, stage));
    await seat.forget();
    print({ leg: leg.name, client: column, why, seconds: (Date.now() - begun) / 1000 });
  }
}

/// Our servers: a proxy, whose port the provider knows, and others, each with another kind of
/// token.
async function startServers() {
  const asking = ["--introspection", `${provider.issuer}/introspect`, ASKING.client_id];
  const kinds = {
    proxy: { secret: PROXY.client_secret, args: ["--proxy", PROXY.client_id] },
    plain: { seconds: 600, format: "jwt", alg: "ES256", args: [] },
    brief: { seconds: 6, format: "jwt", alg: "RS256", args: ["--exact-clock"] },
    proving: { seconds: 600, format: "jwt", alg: "EdDSA", args: ["--dpop"] },
    asking: { seconds: 600, format: "opaque", secret: ASKING.client_secret, args: asking },
    program: { seconds: 600, format: "jwt", alg: "RS256" },
  };
  const started = Object.entries(kinds).map(async ([name, { args, secret, ...tokens }], number) => {
    const port = ports[number];
    const url = `http://127.0.0.1:${port}/mcp`;
    if (tokens.format) provider.protect(url, tokens);
    const env = { ...process.env, PORT: `${port}`, CLIENT_SECRET: secret };
    if (args) await serve(settings.server, [provider.issuer, ...args], { env });
    else await serve(settings.outlive, ["serve", file(url, port)], { env: { ...env, OUTLIVE_DATA_DIR: join(root, "serve") } });
    return [name, url];
  });
  return Object.fromEntries(await Promise.all(started));
}

/// The configuration of `outlive serve`.
function file(url, port) {
  const path = join(root, "outlive.toml");
  writeFileSync(
    path,
    `[server]
listen = "127.0.0.1:${port}"
[auth]
resource = "${url}"
issuer = "${provider.issuer}"
scopes = ["mcp"]
[tools.hello]
description = "Says hello."
command = ["echo", "hello from a command"]
`,
  );
  return path;
}

function versionOf(name) {
  return JSON.parse(readFileSync(join(settings.here, "node_modules", name, "package.json"))).version;
}

/// Returns the error, with the events of the authorization server.
function explained(error, stage) {
  return [error.message, ...stage.provider.seen().map((it) => JSON.stringify(it))].join("\n");
}

function print(line) {
  console.log(JSON.stringify(line));
}
