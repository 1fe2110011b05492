// A server of the official TypeScript SDK, first major version, with the names of our everything server:
// `node server1.mjs --stdio`; or with `PORT` in the environment, over HTTP+SSE with `--sse`, else over Streamable HTTP.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { completable } from "@modelcontextprotocol/sdk/server/completable.js";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";
import * as z from "zod";

const held = { running: 0, cancelled: 0 };
const text = (text) => ({ content: [{ type: "text", text }] });
const watched = "test://watched-resource";
const consent = { mode: "url", message: "Please agree", url: "https://example.com/consent" };
let hasMore = false;
let hasConsent = false;

function everything() {
  const capabilities = { logging: {}, resources: { subscribe: true } };
  const server = new McpServer({ name: "ts1-server", version: "1.32.2" }, { capabilities });
  const tool = (name, run, inputSchema = {}) => server.registerTool(name, { description: name, inputSchema }, run);

  tool("test_simple_text", async () => text("This is a simple text response for testing."));
  server.registerResource("static", "test://static-text", {}, async (uri) => ({ contents: [{ uri: uri.href, text: "text" }] }));
  server.registerResource("watched", watched, {}, async (uri) => ({ contents: [{ uri: uri.href, text: "watched" }] }));
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, {}, async (uri, { id }) => ({ contents: [{ uri: uri.href, text: `Data for ID: ${id}` }] }));
  const words = ["test", "testing", "value"];
  const arg1 = completable(z.string(), (value) => words.filter((word) => word.startsWith(value)));
  server.registerPrompt("test_prompt_with_arguments", { argsSchema: { arg1, arg2: z.string() } }, ({ arg1, arg2 }) => ({
    messages: [{ role: "user", content: { type: "text", text: `${arg1} ${arg2}` } }],
  }));
  tool("test_tool_with_logging", async (_, extra) => {
    await extra.sendNotification({ method: "notifications/message", params: { level: "info", data: "a line" } });
    return text("logged");
  });
  tool("test_tool_with_progress", async (_, extra) => {
    const progressToken = extra._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      await sleep(50);
    }
    return text("done");
  });
  const user = { type: "object", properties: { username: { type: "string" }, email: { type: "string", format: "email" } }, required: ["username", "email"] };
  tool("test_elicitation", async ({ message }, extra) => {
    const { content } = await server.server.elicitInput({ message, requestedSchema: user }, { relatedRequestId: extra.requestId });
    return text(`User response: ${content.username} <${content.email}>`);
  }, { message: z.string() });
  const sample = async ({ prompt }, extra) => {
    const messages = [{ role: "user", content: { type: "text", text: prompt } }];
    const message = await server.server.createMessage({ messages, maxTokens: 100 }, { relatedRequestId: extra.requestId });
    return text(`LLM response: ${JSON.stringify(message)}`);
  };
  tool("test_sampling", sample, { prompt: z.string() });
  tool("sample_in_task", sample, { prompt: z.string() });
  tool("test_url_elicitation", async (_, extra) => {
    const { action } = await server.server.elicitInput({ ...consent, elicitationId: randomUUID() }, { relatedRequestId: extra.requestId });
    return text(`url: ${action}`);
  });
  tool("test_url_required", async () => {
    if (hasConsent) return text("consented");
    hasConsent = true;
    throw new types.UrlElicitationRequiredError([{ ...consent, elicitationId: randomUUID() }]);
  });
  // Without the call that it belongs to, as many servers do.
  tool("test_input_required_result_list_roots", async () => text(`${(await server.server.listRoots()).roots.length} roots`));
  tool("slow_compute", async ({ seconds, label }) => {
    await sleep(seconds * 1000);
    return text(`${label} took ${seconds} seconds`);
  }, { seconds: z.number(), label: z.string() });
  tool("hold", async (_, extra) => {
    held.running += 1;
    try {
      await sleep(30_000, undefined, { signal: extra.signal });
    } catch {
      held.cancelled += 1;
    } finally {
      held.running -= 1;
    }
    return text("held");
  });
  tool("held", async () => text(`running: ${held.running}, cancelled: ${held.cancelled}`));
  const more = tool("test_added_tool", async () => text("added"));
  if (!hasMore) more.disable();
  tool("test_trigger_tool_change", async () => {
    hasMore = !hasMore;
    if (hasMore) more.enable();
    else more.disable();
    return text("the list of tools has changed");
  });
  for (const schema of [types.SubscribeRequestSchema, types.UnsubscribeRequestSchema]) server.server.setRequestHandler(schema, async () => ({}));
  tool("test_touch_resource", async () => {
    await server.server.sendResourceUpdated({ uri: watched });
    return text("touched");
  });
  return server;
}

const sessions = new Map();

async function streamable(req, res) {
  let transport = sessions.get(req.headers["mcp-session-id"]);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await everything().connect(transport);
  }
  await transport.handleRequest(req, res);
}

async function sse(req, res) {
  const { pathname, searchParams } = new URL(req.url, "http://localhost");
  if (req.method === "GET" && pathname === "/sse") {
    const transport = new SSEServerTransport("/messages", res);
    sessions.set(transport.sessionId, transport);
    return everything().connect(transport);
  }
  const transport = sessions.get(searchParams.get("sessionId"));
  if (transport) return transport.handlePostMessage(req, res);
  res.writeHead(404).end();
}

if (process.argv.includes("--stdio")) {
  await everything().connect(new StdioServerTransport());
} else {
  const http = createServer(process.argv.includes("--sse") ? sse : streamable);
  http.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => console.log(`listening ${http.address().port}`));
}
