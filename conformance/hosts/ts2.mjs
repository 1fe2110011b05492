// A host with the official TypeScript SDK, second major version, in 2026-07-28.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { play } from "./model.mjs";

await play(async (plan, run) => {
  const versionNegotiation = { mode: { pin: "2026-07-28" } };
  const client = new Client({ name: plan.host, version: "1" }, { capabilities: {}, versionNegotiation });
  const [command, ...args] = plan.command;
  await client.connect(
    run.transport === "stdio"
      ? new StdioClientTransport({ command, args, stderr: "ignore" })
      : new StreamableHTTPClientTransport(new URL(plan.url)),
  );
  await client.listTools();
  return {
    call: (name, args) => client.callTool({ name, arguments: args }, { timeout: plan.timeoutMs }),
    close: () => client.close(),
  };
});
