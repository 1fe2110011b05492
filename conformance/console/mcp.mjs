// A caller of the MCP endpoint, and a person at the API of the console.

const VERSION = "2026-07-28";

/** Calls a tool as a client with tasks. Returns the ID of the task. */
export async function call(origin, token, tool, args) {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": { name: "claude-code", version: "2.1.3" },
    "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
  };
  const params = { name: tool, arguments: args, _meta: meta };
  const response = await fetch(`${origin}/mcp`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${token}`,
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": VERSION,
      "Mcp-Method": "tools/call",
      "Mcp-Name": tool,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  });
  const text = await response.text();
  const id = /"taskId":"([^"]+)"/.exec(text)?.[1];
  if (!id) throw new Error(`the call is not a task: ${text}`);
  return id;
}

/** Reads an object of the API. */
export async function read(origin, token, path) {
  const response = await fetch(`${origin}/console/api/v1/${path}`, { headers: { Authorization: `Bearer ${token}` } });
  if (!response.ok) throw new Error(`${path} returned ${response.status}`);
  return response.json();
}

/** The path of the approval request of a task. */
export function approval(task) {
  return `inputs/${task}/%23approval`;
}

/** Votes for a request. */
export async function approve(origin, token, task) {
  const { digest } = await read(origin, token, approval(task));
  const response = await fetch(`${origin}/console/api/v1/${approval(task)}/answer`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ digest, action: "accept" }),
  });
  if (!response.ok) throw new Error(`the vote was rejected with ${response.status}`);
}
