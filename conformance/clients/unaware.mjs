// Third-party clients that do not know our response modes and extensions: `node unaware.mjs WITH WITHOUT`,
// two URLs of the same server, with these features enabled and disabled. Each client must get the same
// messages from both, except for the declared capabilities.

import assert from "node:assert/strict";

import { Client as V1Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as V1Transport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";

const INFO = { name: "unaware", version: "1.0.0" };
const TASKS = { extensions: { "io.modelcontextprotocol/tasks": {} } };

/// A fetch that records all response messages.
function recording(heard) {
  return async (url, init) => {
    const response = await fetch(url, init);
    const copy = response.clone();
    heard.push(
      copy.text().then(
        (text) => ({
          sent: init?.body ? JSON.parse(init.body) : { method: init?.method ?? "GET" },
          status: copy.status,
          text,
        }),
        // The stream was still open when its client disconnected.
        () => undefined,
      ),
    );
    return response;
  };
}

/// The TypeScript SDK, first major version, with its experimental tasks of 2025-11-25.
async function sdkV1(url, heard) {
  const client = new V1Client(INFO, { capabilities: {} });
  await client.connect(new V1Transport(new URL(url), { fetch: recording(heard) }));
  const { tools } = await client.listTools();
  const plain = await client.callTool({ name: "plain", arguments: {} });
  const seen = [];
  const call = client.experimental.tasks.callToolStream(
    { name: "report", arguments: {} },
    CallToolResultSchema,
    { task: { ttl: 60_000 } },
  );
  for await (const message of call) {
    seen.push(message.type);
    if (message.type === "error") throw message.error;
    if (message.type === "result") seen.push(message.result.content);
  }
  await client.close();
  return { tools: tools.map((tool) => tool.name), plain: plain.content, seen: seen.filter((it) => it !== "taskStatus") };
}

/// The TypeScript SDK, second major version, without tasks.
async function sdkV2(url, heard, mode) {
  const client = new Client(INFO, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch: recording(heard) }));
  const { tools } = await client.listTools();
  const plain = await client.callTool({ name: "plain", arguments: {} });
  await client.close();
  return { tools: tools.map((tool) => tool.name), plain: plain.content };
}

/// The client of the tasks extension, in either era.
async function extTasks(url, heard, mode) {
  const fetching = recording(heard);
  const modern = mode !== "legacy";
  const capabilities = modern ? TASKS : {};
  const client = new Client(INFO, { versionNegotiation: { mode }, capabilities });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch: fetching }));
  let id = 1000;
  const raw = {
    // The host provides the framing of a request and the transport.
    rawDispatch: async (request) => {
      const name = request.params?.name ?? request.params?.taskId;
      const headers = {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": request.method,
        ...(name ? { "mcp-name": name } : {}),
      };
      const body = JSON.stringify({ jsonrpc: "2.0", id: id++, ...request });
      const response = await fetching(url, { method: "POST", headers, body });
      return messages(await response.text()).at(-1);
    },
    v2RequestFraming: { protocolVersion: "2026-07-28", clientInfo: INFO, clientCapabilities: TASKS },
  };
  const session = createTaskSessionFromClient(client, { endpointId: "outlive", ...(modern ? raw : {}) });
  const execution = await session.callTool("report", {});
  const { outcome } = await execution.settle();
  const { content } = resultFromTaskOutcome(outcome);
  await session.close();
  await client.close();
  return { content };
}

/// The messages of a body: one JSON message, or an event stream.
function messages(text) {
  if (!/^(id|event|data|retry|:)/m.test(text) || text.startsWith("{")) return text ? [JSON.parse(text)] : [];
  const data = text.split("\n").filter((line) => line.startsWith("data:"));
  return data.map((line) => line.slice(5).trim()).filter(Boolean).map((json) => JSON.parse(json));
}

/// The messages of a client without IDs, times and the number of polls.
async function told(heard) {
  const lines = new Set();
  for (const exchange of (await Promise.all(heard)).filter(Boolean)) {
    const handshake = ["initialize", "server/discover"].includes(exchange.sent.method);
    for (const message of messages(exchange.text)) {
      if (handshake) {
        // Only these members declare the enabled features.
        delete message.result?.capabilities?.tasks?.responses;
        delete message.result?.capabilities?.extensions?.["dev.outlive/task-partials"];
      }
      const text = JSON.stringify(message, (key, value) => {
        if (["createdAt", "lastUpdatedAt", "taskId", "ttl", "ttlMs"].includes(key)) return `a ${key}`;
        return key === "id" ? "an id" : value;
      });
      for (const word of ["partial-content", "seqNr", "isComplete", "fallback-mode", "dev.outlive"]) {
        assert(!text.includes(word), `${word} was told to a client that knows nothing of it: ${text}`);
      }
      lines.add(`${exchange.sent.method} ${exchange.status} ${text}`);
    }
  }
  return [...lines].sort();
}

const [WITH, WITHOUT] = process.argv.slice(2);
const clients = {
  "@modelcontextprotocol/sdk 1.32.2": sdkV1,
  "@modelcontextprotocol/client 2.4.0, 2025-11-25": (url, heard) => sdkV2(url, heard, "legacy"),
  "@modelcontextprotocol/client 2.4.0, 2026-07-28": (url, heard) => sdkV2(url, heard, { pin: "2026-07-28" }),
  "@modelcontextprotocol/ext-tasks 0.2.2, 2025-11-25": (url, heard) => extTasks(url, heard, "legacy"),
  "@modelcontextprotocol/ext-tasks 0.2.2, 2026-07-28": (url, heard) => extTasks(url, heard, { pin: "2026-07-28" }),
};
for (const [name, run] of Object.entries(clients)) {
  const runs = [];
  for (const url of [WITH, WITHOUT]) {
    const heard = [];
    const saw = await run(url, heard);
    runs.push({ saw, told: await told(heard) });
  }
  assert.deepEqual(runs[0].saw, runs[1].saw, `${name} sees something else`);
  assert.deepEqual(runs[0].told, runs[1].told, `${name} is told something else`);
  assert(runs[0].told.length > 2, `${name} was told next to nothing`);
  console.log(`${name}: the same ${runs[0].told.length} messages with and without; ${JSON.stringify(runs[0].saw)}`);
}
process.exit(0);
