// The client of the tasks extension with our server: `node tasks.mjs VERSION URL`.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";

const [version, url] = process.argv.slice(2);
const modern = version === "2026-07-28";
const info = { name: "ext-tasks", version: "0.2.2" };
const capabilities = modern ? { extensions: { "io.modelcontextprotocol/tasks": {} } } : {};
const client = new Client(info, { versionNegotiation: { mode: modern ? { pin: version } : "legacy" }, capabilities });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
let id = 1000;
// The host provides the framing of a request and the transport.
const rawDispatch = async (request) => {
  const name = request.params?.name ?? request.params?.taskId;
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": version,
    "mcp-method": request.method,
    ...(name ? { "mcp-name": name } : {}),
  };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: id++, ...request }) });
  const text = await response.text();
  const events = text.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).filter(Boolean);
  return JSON.parse(text.startsWith("{") ? text : events.at(-1));
};
const raw = { rawDispatch, v2RequestFraming: { protocolVersion: version, clientInfo: info, clientCapabilities: capabilities } };
const session = createTaskSessionFromClient(client, { endpointId: "outlive", ...(modern ? raw : {}) });

async function report(feature, run) {
  const why = await run().then(() => null, (error) => `${error.message ?? error}`);
  console.log(JSON.stringify({ feature, why }));
}

await report("tasks", async () => {
  const execution = await session.callTool("slow_compute", { seconds: 0.3, label: "it" });
  const { outcome } = await execution.settle();
  const { content } = resultFromTaskOutcome(outcome);
  if (!content[0].text.includes("it took")) throw new Error(JSON.stringify(content));
});
await session.close();
await client.close();
process.exit(0);
