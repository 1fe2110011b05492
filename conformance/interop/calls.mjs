// Calls tools of servers of other authors: `node calls.mjs VERSION URL`, with `[{feature, name, arguments, says}]` as JSON in
// `CALLS`. A 2024-11-05 client is the official TypeScript SDK in its first major version over HTTP+SSE, a 2026-07-28 client its
// second one. Reports each call as one line of JSON: `{feature, why}`.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";

const [version, url] = process.argv.slice(2);

function modern() {
  const info = { name: "calls", version: "2.4.0" };
  return [new Client(info, { versionNegotiation: { mode: { pin: version } } }), new StreamableHTTPClientTransport(new URL(url))];
}

function legacy() {
  const transport = new SSEClientTransport(new URL(url));
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if (message.method === "initialize") message.params.protocolVersion = version;
    return send(message, options);
  };
  return [new Client1({ name: "calls", version: "1.32.2" }), transport];
}

const [client, transport] = version === "2026-07-28" ? modern() : legacy();
await client.connect(transport);
const calls = JSON.parse(process.env.CALLS);

/// The names of all tools. The first list does not wait for servers that start slowly, so it is repeated.
async function listed() {
  const names = new Set();
  let cursor;
  do {
    const page = await client.listTools({ cursor });
    for (const tool of page.tools) names.add(tool.name);
    cursor = page.nextCursor;
  } while (cursor);
  return names;
}

let names = await listed();
for (let tries = 0; tries < 60 && !calls.every(({ name }) => names.has(name)); tries++) {
  await new Promise((resolve) => setTimeout(resolve, 500));
  names = await listed();
}
for (const { feature, name, arguments: args, says } of calls) {
  let why = null;
  try {
    if (!names.has(name)) throw new Error(`\`${name}\` is not listed`);
    const result = await client.callTool({ name, arguments: args });
    const said = JSON.stringify(result);
    if (result.isError || !said.includes(says)) throw new Error(said.slice(0, 500));
  } catch (error) {
    why = `${error.message ?? error}`;
  }
  console.log(JSON.stringify({ feature, why }));
}
await client.close();
process.exit(0);
