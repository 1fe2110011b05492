// A host with the MCP client of the AI SDK, in 2026-07-28.

import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";

import { play } from "./model.mjs";

await play(async (plan, run) => {
  const [command, ...args] = plan.command;
  const client = await createMCPClient({
    clientName: plan.host,
    version: "1",
    transport:
      run.transport === "stdio"
        ? new StdioTransport({ command, args, stderr: "ignore" })
        : { type: "http", url: plan.url },
  });
  await client.listTools();
  return {
    call: (name, args) => client.callTool({ name, arguments: args, options: { timeout: plan.timeoutMs } }),
    close: () => client.close(),
  };
});
