// Benchmark server of the official TypeScript SDK: `node server.mjs (calls TOOLS | progress)`.
//
// Prints `listening PORT` on standard output and exits at the end of standard input. With `--defaults` responses are
// streams if the handler requests it; without, responses are JSON. The SDK has no tasks.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer, createMcpHandler } from "@modelcontextprotocol/server";
import * as z from "zod";

const words = process.argv.slice(2).filter((word) => word !== "--defaults");
const defaults = process.argv.includes("--defaults");
const [what, tools = "1"] = words;
if (!["calls", "progress"].includes(what)) throw new Error("usage: [--defaults] (calls TOOLS | progress)");

const message = z.object({ message: z.string() });
const steps = z.object({ steps: z.number() });
const say = async ({ message }) => ({ content: [{ type: "text", text: message }] });

// Called for every request or session, because the SDK requires a separate server for each.
function bench() {
  const server = new McpServer({ name: "bench", version: "1.0.0" });
  const config = { description: "Returns its argument", inputSchema: message };
  server.registerTool("echo", config, say);
  for (let number = 1; number < Number(tools); number += 1) {
    server.registerTool(`tool_${String(number).padStart(5, "0")}`, config, say);
  }
  if (what === "progress") {
    server.registerTool("count", { description: "Reports progress steps", inputSchema: steps }, async ({ steps }, ctx) => {
      const progressToken = ctx.mcpReq._meta?.progressToken;
      for (let step = 1; step <= steps; step += 1) {
        await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: step, total: steps } });
      }
      return { content: [{ type: "text", text: `counted to ${steps}` }] };
    });
  }
  return server;
}

const options = { legacy: "reject" };
if (!defaults && what === "calls") options.responseMode = "json";
const modern = toNodeHandler(createMcpHandler(bench, options));
const sessions = new Map();
async function legacy(req, res) {
  let transport = sessions.get(req.headers["mcp-session-id"]);
  if (!transport) {
    transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: !defaults && what === "calls",
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await bench().connect(transport);
  }
  await transport.handleRequest(req, res);
}
const http = createServer((req, res) => (req.headers["mcp-protocol-version"] === "2026-07-28" ? modern : legacy)(req, res));
// Connections stay idle during other measurements; the default closes them after five seconds.
http.keepAliveTimeout = 600_000;
http.listen(0, "127.0.0.1", () => console.log(`listening ${http.address().port}`));
process.stdin.on("end", () => process.exit(0)).resume();
