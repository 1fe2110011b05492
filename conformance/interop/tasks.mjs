// The client of the tasks extension with our server: `node tasks.mjs VERSION URL`. `FEATURES` in the environment selects features.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
  resultFromTaskOutcome,
  toolDeclarationFromMcpTool,
} from "@modelcontextprotocol/ext-tasks/client";
import { bindTaskReceiver } from "@modelcontextprotocol/ext-tasks/receiver";

const [version, url] = process.argv.slice(2);
const modern = version === "2026-07-28";
const selected = process.env.FEATURES?.split(",") ?? ["tasks"];
const info = { name: "ext-tasks", version: "0.2.2" };
const message = { role: "assistant", content: { type: "text", text: "a sampled text" }, model: "a-model", stopReason: "endTurn" };
const capabilities = {
  ...(selected.includes("tasks") ? {} : { sampling: {} }),
  ...(modern ? { extensions: { "io.modelcontextprotocol/tasks": {} } } : {}),
};
const client = new Client(info, { versionNegotiation: { mode: modern ? { pin: version } : "legacy" }, capabilities });
if (selected.includes("hosted")) {
  const receiver = bindTaskReceiver(client, { methods: { "sampling/createMessage": true }, sampling: async () => message });
  client.registerCapabilities({ tasks: receiver.capabilities });
}
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
const onInputRequest = createApplicationInputHandler({
  elicitation: async () => ({ action: "decline" }),
  sampling: async () => message,
  roots: async () => ({ roots: [] }),
});
const session = createTaskSessionFromClient(client, { endpointId: "outlive", onInputRequest, ...(modern ? raw : {}) });

async function report(feature, run) {
  if (!selected.includes(feature)) return;
  const why = await run().then(() => null, (error) => `${error.message ?? error}`);
  console.log(JSON.stringify({ feature, why }));
}

/// Calls a tool to the end of its task. Before 2026-07-28, the client requests a task if the list of tools allows it.
async function settles(name, args, expected) {
  const { tools } = await client.listTools();
  const declaration = toolDeclarationFromMcpTool(tools.find((tool) => tool.name === name));
  const execution = await session.callTool(name, args, { declaration, task: { preference: "require" } });
  const { outcome } = await execution.settle();
  const { content } = resultFromTaskOutcome(outcome);
  if (!content[0].text.includes(expected)) throw new Error(JSON.stringify(content));
}

for (const feature of ["tasks", "task"]) await report(feature, () => settles("slow_compute", { seconds: 0.3, label: "it" }, "it took"));
await report("task_input", () => settles("sample_in_task", { prompt: "Say something" }, "a sampled text"));
await report("hosted", async () => {
  const { content } = await client.callTool({ name: "test_sampling", arguments: { prompt: "Say something" } });
  if (!content[0].text.includes("a sampled text")) throw new Error(JSON.stringify(content));
});
await session.close();
await client.close();
process.exit(0);
