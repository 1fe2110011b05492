// The official TypeScript client with our server: `node client.mjs VERSION URL`, or `… VERSION -- PROGRAM ARGUMENT…`.
// Reports each feature as `interop-client` does: one line of JSON each.

import { setTimeout as sleep } from "node:timers/promises";

import { Client, LOG_LEVEL_META_KEY, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [version, target, command, ...args] = process.argv.slice(2);
const modern = version === "2026-07-28";
const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
const mode = modern ? { pin: version } : "legacy";
const client = new Client({ name: "ts-client", version: "2.4.0" }, { capabilities, versionNegotiation: { mode } });
client.setRequestHandler("elicitation/create", async () => ({
  action: "accept",
  content: { username: "Ada", email: "ada@example.com" },
}));
client.setRequestHandler("sampling/createMessage", async () => ({
  role: "assistant",
  content: { type: "text", text: "a sampled text" },
  model: "a-model",
  stopReason: "endTurn",
}));
client.setRequestHandler("roots/list", async () => ({ roots: [{ uri: "file:///interop", name: "interop" }] }));
const heard = { logs: 0, changes: 0 };
client.setNotificationHandler("notifications/message", () => void (heard.logs += 1));
client.setNotificationHandler("notifications/tools/list_changed", () => void (heard.changes += 1));
const transport = target === "--" ? new StdioClientTransport({ command, args }) : new StreamableHTTPClientTransport(new URL(target));
await client.connect(transport);

async function report(feature, run) {
  let why = null;
  try {
    await Promise.race([
      run(),
      sleep(15_000, undefined, { ref: false }).then(() => Promise.reject(new Error("nothing within 15 seconds"))),
    ]);
  } catch (error) {
    why = `${error.message ?? error}`;
  }
  console.log(JSON.stringify({ feature, why }));
}

async function says(name, expected, args = {}, options = {}, meta = undefined) {
  const result = await client.callTool({ name, arguments: args, ...(meta ? { _meta: meta } : {}) }, options);
  const said = result.content?.map((block) => block.text).join("\n");
  if (result.isError || !said?.includes(expected)) throw new Error(`\`${name}\` says ${JSON.stringify(result)}`);
}

async function until(what, condition) {
  for (let tries = 0; tries < 50; tries++) {
    if (await condition()) return;
    await sleep(100);
  }
  throw new Error(what);
}

const holding = (expected) => says("held", expected).then(() => true, () => false);

await report("tools", async () => {
  const { tools } = await client.listTools();
  if (!tools.some((tool) => tool.name === "test_simple_text")) throw new Error("the tool is not listed");
  await says("test_simple_text", "simple text");
});
await report("resources", async () => {
  await client.listResources();
  const { contents } = await client.readResource({ uri: "test://static-text" });
  if (!contents.length) throw new Error("the resource is empty");
});
await report("prompts", async () => {
  await client.listPrompts();
  const { messages } = await client.getPrompt({ name: "test_prompt_with_arguments", arguments: { arg1: "one", arg2: "two" } });
  if (!messages.length) throw new Error("the prompt is empty");
});
await report("completion", async () => {
  const ref = { type: "ref/prompt", name: "test_prompt_with_arguments" };
  const { completion } = await client.complete({ ref, argument: { name: "arg1", value: "te" } });
  if (!completion.values.includes("test")) throw new Error(`it completes to ${completion.values}`);
});
await report("logging", async () => {
  if (!modern) await client.setLoggingLevel("debug");
  await says("test_tool_with_logging", "logged", {}, {}, modern ? { [LOG_LEVEL_META_KEY]: "debug" } : undefined);
  await until("no log message came", () => heard.logs > 0);
});
await report("progress", async () => {
  let came = 0;
  await says("test_tool_with_progress", "done", {}, { onprogress: () => void (came += 1) });
  if (came < 2) throw new Error(`${came} notifications of progress came`);
});
await report("elicitation", () => says("test_elicitation", "ada@example.com", { message: "Who are you?" }));
await report("sampling", () => says("test_sampling", "a sampled text", { prompt: "Say something" }));
await report("roots", () => says("test_input_required_result_list_roots", "1 roots"));
await report("cancel", async () => {
  const abort = new AbortController();
  const call = says("hold", "", {}, { signal: abort.signal }).catch(() => {});
  await until("the call does not run", () => holding("running: 1"));
  abort.abort();
  await until("the call was not cancelled", () => holding("cancelled: 1"));
  await call;
});
await report("listen", async () => {
  if (modern) await client.listen({ toolsListChanged: true });
  await says("test_trigger_tool_change", "changed");
  await until("no change was heard of", () => heard.changes > 0);
});
if (!modern && target !== "--") await report("resumption", () => says("test_reconnection", "completed successfully"));
await client.close();
process.exit(0);
