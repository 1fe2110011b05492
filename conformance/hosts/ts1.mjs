// A host with the official TypeScript SDK, first major version. With `plan.progress`, progress extends its timeout.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { play } from "./model.mjs";

await play(async (plan, run) => {
  const client = new Client({ name: plan.host, version: "1" }, { capabilities: {} });
  const [command, ...args] = plan.command;
  await client.connect(
    run.transport === "stdio"
      ? new StdioClientTransport({ command, args, stderr: "ignore" })
      : new StreamableHTTPClientTransport(new URL(plan.url)),
  );
  // The client validates structured content against the schemas of this list.
  await client.listTools();
  const extending = plan.progress ? { onprogress: () => {}, resetTimeoutOnProgress: true } : {};
  return {
    call: (name, args) =>
      client.callTool({ name, arguments: args }, undefined, { timeout: plan.timeoutMs, ...extending }),
    close: () => client.close(),
  };
});
