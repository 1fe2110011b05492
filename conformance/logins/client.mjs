// The official TypeScript client with a protected server: `node client.mjs VERSION URL STEP…`.
// Works as `login-client`: a step is a tool or a number of seconds to wait; one line of JSON per tool.

import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, DpopSession, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";

const [version, url, ...steps] = process.argv.slice(2);
const mode = version === "2026-07-28" ? { pin: version } : "legacy";

// The redirect URI of the login.
let redirected = Promise.withResolvers();
const callback = createServer((request, response) => {
  const query = new URL(request.url, "http://127.0.0.1").searchParams;
  if (!query.has("state")) return void response.writeHead(404).end();
  response.writeHead(200, { "content-type": "text/html" }).end("<title>Done</title>You may close this page.");
  redirected.resolve(query);
});
await new Promise((listening) => callback.listen(0, "127.0.0.1", listening));
const redirectUrl = `http://127.0.0.1:${callback.address().port}/callback`;

// The parts that an application provides: storage, and opening the browser.
const kept = {};
const provider = {
  redirectUrl,
  clientMetadata: {
    client_name: "The TypeScript client",
    redirect_uris: [redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  state: () => (kept.state = crypto.randomUUID()),
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  discoveryState: () => kept.discovery,
  saveDiscoveryState: (discovery) => void (kept.discovery = discovery),
  redirectToAuthorization: (page) => void spawn(process.env.BROWSER, [page.href], { stdio: "inherit" }),
};
if (process.env.DPOP) {
  const session = DpopSession.create();
  provider.dpop = () => session;
}

let client;
async function connected() {
  if (client) return client;
  const made = new Client({ name: "ts-client", version: "1" }, { versionNegotiation: { mode } });
  await made.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider: provider }));
  return (client = made);
}

/// Calls a tool and lets the user log in if required.
async function call(name) {
  for (let logins = 0; ; logins++) {
    try {
      const result = await (await connected()).callTool({ name, arguments: {} });
      return { tool: name, text: result.content.map((block) => block.text).join("\n") };
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || logins === 2) throw error;
      const query = await redirected.promise;
      redirected = Promise.withResolvers();
      if (query.get("state") !== kept.state) throw new Error("its state is that of another login");
      await new StreamableHTTPClientTransport(new URL(url), { authProvider: provider }).finishAuth(query);
    }
  }
}

for (const step of steps) {
  if (Number(step)) await sleep(1000 * Number(step));
  else console.log(JSON.stringify(await call(step).catch((error) => ({ tool: step, error: `${error.code}: ${error}` }))));
}
await client?.close();
callback.close();
callback.closeAllConnections();
