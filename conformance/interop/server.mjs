// A server of the official TypeScript SDK, with the names of our everything server:
// `node server.mjs --stdio`, or `node server.mjs`, which prints `listening PORT`.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import {
  McpServer,
  ResourceTemplate,
  UrlElicitationRequiredError,
  acceptedContent,
  completable,
  createMcpHandler,
  inputRequired,
  inputResponse,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

const held = { running: 0, cancelled: 0 };
const text = (text) => ({ content: [{ type: "text", text }] });
const watched = "test://watched-resource";
let changed = () => {};
let updated = () => {};
let hasMore = false;
let hasConsent = false;

function everything() {
  const server = new McpServer({ name: "ts-server", version: "2.4.0" }, {
    capabilities: { logging: {}, tools: { listChanged: true }, resources: { subscribe: true } },
  });
  const tool = (name, run, inputSchema = z.object({})) => server.registerTool(name, { description: name, inputSchema }, run);

  tool("test_simple_text", async () => text("This is a simple text response for testing."));
  server.registerResource("static", "test://static-text", {}, async (uri) => ({ contents: [{ uri: uri.href, text: "text" }] }));
  server.registerResource("watched", watched, {}, async (uri) => ({ contents: [{ uri: uri.href, text: "watched" }] }));
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, {}, async (uri, { id }) => ({ contents: [{ uri: uri.href, text: `Data for ID: ${id}` }] }));
  const words = ["test", "testing", "value"];
  const arg1 = completable(z.string(), (value) => words.filter((word) => word.startsWith(value)));
  server.registerPrompt("test_prompt_with_arguments", { argsSchema: z.object({ arg1, arg2: z.string() }) }, ({ arg1, arg2 }) => ({
    messages: [{ role: "user", content: { type: "text", text: `${arg1} ${arg2}` } }],
  }));
  tool("test_tool_with_logging", async (_, ctx) => {
    await ctx.mcpReq.log("info", "a line");
    return text("logged");
  });
  tool("test_tool_with_progress", async (_, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      await sleep(50);
    }
    return text("done");
  });
  const user = { type: "object", properties: { username: { type: "string" }, email: { type: "string", format: "email" } }, required: ["username", "email"] };
  tool("test_elicitation", async ({ message }, ctx) => {
    const answer = acceptedContent(ctx.mcpReq.inputResponses, "user");
    if (answer) return text(`User response: ${answer.username} <${answer.email}>`);
    return inputRequired({ inputRequests: { user: inputRequired.elicit({ mode: "form", message, requestedSchema: user }) } });
  }, z.object({ message: z.string() }));
  const sample = async ({ prompt }, ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, "llm");
    if (answer.kind === "sampling") return text(`LLM response: ${JSON.stringify(answer)}`);
    const messages = [{ role: "user", content: { type: "text", text: prompt } }];
    return inputRequired({ inputRequests: { llm: inputRequired.createMessage({ messages, maxTokens: 100 }) } });
  };
  tool("test_sampling", sample, z.object({ prompt: z.string() }));
  tool("sample_in_task", sample, z.object({ prompt: z.string() }));
  const consent = { message: "Please agree", url: "https://example.com/consent" };
  tool("test_url_elicitation", async (_, ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, "url");
    if (answer.kind === "elicit") return text(`url: ${answer.action}`);
    return inputRequired({ inputRequests: { url: inputRequired.elicitUrl(consent) } });
  });
  tool("test_url_required", async () => {
    if (hasConsent) return text("consented");
    hasConsent = true;
    throw new UrlElicitationRequiredError([{ mode: "url", elicitationId: randomUUID(), ...consent }]);
  });
  tool("test_input_required_result_request_state", async (_, ctx) => {
    const answer = acceptedContent(ctx.mcpReq.inputResponses, "confirm");
    if (answer) return text(ctx.mcpReq.requestState() === "the state" ? `state-ok: ${answer.ok}` : "another state");
    const requestedSchema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };
    const confirm = inputRequired.elicit({ mode: "form", message: "Is this all right?", requestedSchema });
    return inputRequired({ inputRequests: { confirm }, requestState: "the state" });
  });
  tool("test_input_required_result_list_roots", async (_, ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, "roots");
    if (answer.kind === "roots") return text(`${answer.roots.length} roots`);
    return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
  });
  tool("slow_compute", async ({ seconds, label }) => {
    await sleep(seconds * 1000);
    return text(`${label} took ${seconds} seconds`);
  }, z.object({ seconds: z.number(), label: z.string() }));
  tool("hold", async (_, ctx) => {
    held.running += 1;
    try {
      await sleep(30_000, undefined, { signal: ctx.mcpReq.signal });
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
    // Notifies the client of a session.
    if (hasMore) more.enable();
    else more.disable();
    changed();
    return text("the list of tools has changed");
  });
  for (const method of ["resources/subscribe", "resources/unsubscribe"]) server.server.setRequestHandler(method, async () => ({}));
  tool("test_touch_resource", async () => {
    // A client of 2026-07-28 over HTTP gets it from `updated` instead.
    await server.server.sendResourceUpdated({ uri: watched }).catch(() => {});
    updated();
    return text("touched");
  });
  tool("test_reconnection", async (_, ctx) => {
    // Fails if there is no stream to close, so that the feature cannot pass without one.
    ctx.http.closeSSE();
    await sleep(100);
    return text("Reconnection test completed successfully.");
  });
  return server;
}

// The event store for resumption.
class Events {
  #events = [];
  async storeEvent(streamId, message) {
    this.#events.push({ id: `${this.#events.length}`, streamId, message });
    return `${this.#events.length - 1}`;
  }
  async getStreamIdForEventId(id) {
    return this.#events[Number(id)]?.streamId;
  }
  async replayEventsAfter(id, { send }) {
    const { streamId } = this.#events[Number(id)];
    for (const event of this.#events.slice(Number(id) + 1)) {
      // The first event of a stream has only an ID.
      if (event.streamId === streamId && event.message.method + event.message.id !== "undefinedundefined") await send(event.id, event.message);
    }
    return streamId;
  }
}

if (process.argv.includes("--stdio")) {
  serveStdio(everything);
} else {
  const modern = createMcpHandler(everything, { legacy: "reject" });
  changed = () => modern.notify.toolsChanged();
  updated = () => modern.notify.resourceUpdated(watched);
  const handler = toNodeHandler(modern);
  const sessions = new Map();
  const legacy = async (req, res) => {
    let transport = sessions.get(req.headers["mcp-session-id"]);
    if (!transport) {
      transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: new Events(),
        retryInterval: 100,
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await everything().connect(transport);
    }
    await transport.handleRequest(req, res);
  };
  const http = createServer((req, res) => (req.headers["mcp-protocol-version"] === "2026-07-28" ? handler : legacy)(req, res));
  http.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => console.log(`listening ${http.address().port}`));
}
