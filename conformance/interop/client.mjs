// The official TypeScript client with our server: `node client.mjs VERSION URL`, or `… VERSION -- PROGRAM ARGUMENT…`.
// Reports each feature as `interop-client` does: one line of JSON each. `FEATURES` in the environment selects them.

import { setTimeout as sleep } from "node:timers/promises";

import { Client, LOG_LEVEL_META_KEY, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [version, target, command, ...args] = process.argv.slice(2);
const modern = version === "2026-07-28";
const selected = process.env.FEATURES?.split(",");
const hasUrls = selected?.some((feature) => feature.startsWith("url"));
const capabilities = { elicitation: { form: {}, ...(hasUrls ? { url: {} } : {}) }, sampling: {}, roots: {} };
const mode = modern ? { pin: version } : "legacy";
const supported = modern ? {} : { supportedProtocolVersions: [version] };
const client = new Client({ name: "ts-client", version: "2.4.0" }, { capabilities, versionNegotiation: { mode }, ...supported });
client.setRequestHandler("elicitation/create", async ({ params }) => {
  if (params.mode === "url") return { action: "accept" };
  const known = { username: "Ada", email: "ada@example.com", ok: true };
  const wanted = Object.keys(params.requestedSchema.properties);
  return { action: "accept", content: Object.fromEntries(wanted.map((name) => [name, known[name]])) };
});
client.setRequestHandler("sampling/createMessage", async () => ({
  role: "assistant",
  content: { type: "text", text: "a sampled text" },
  model: "a-model",
  stopReason: "endTurn",
}));
client.setRequestHandler("roots/list", async () => ({ roots: [{ uri: "file:///interop", name: "interop" }] }));
const heard = { logs: 0, changes: 0, updates: 0 };
client.setNotificationHandler("notifications/message", () => void (heard.logs += 1));
client.setNotificationHandler("notifications/tools/list_changed", () => void (heard.changes += 1));
client.setNotificationHandler("notifications/resources/updated", () => void (heard.updates += 1));
const transport = target === "--" ? new StdioClientTransport({ command, args }) : new StreamableHTTPClientTransport(new URL(target));
await client.connect(transport);

async function report(feature, run, isDefault = true) {
  if (selected ? !selected.includes(feature) : !isDefault) return;
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
  const before = heard.changes;
  await says("test_trigger_tool_change", "changed");
  await until("no change was heard of", () => heard.changes > before);
});
// Not in the default run: `cargo xtask interop --gateway` selects these.
const only = (feature, run) => report(feature, run, false);
await only("url", () => says("test_url_elicitation", "url: accept"));
await only("url_required", () => says("test_url_required", "consented"));
await only("templates", async () => {
  const { resourceTemplates } = await client.listResourceTemplates();
  if (!resourceTemplates.some((it) => it.uriTemplate === "test://template/{id}/data")) throw new Error("the template is not listed");
  const { contents } = await client.readResource({ uri: "test://template/7/data" });
  if (!contents[0].text.includes("ID: 7")) throw new Error(JSON.stringify(contents));
});
await only("subscribe", async () => {
  const uri = "test://watched-resource";
  await (modern ? client.listen({ resourceSubscriptions: [uri] }) : client.subscribeResource({ uri }));
  // A gateway subscribes at its upstream a moment later.
  await until("no update was heard of", async () => {
    await says("test_touch_resource", "touched");
    return heard.updates > 0;
  });
});
await only("state", () => says("test_input_required_result_request_state", "state-ok"));
await only("gateway_state", () => says("test_sampling", "a sampled text", { prompt: "Say something" }));
if (!modern && target !== "--") await report("resumption", () => says("test_reconnection", "completed successfully"));
await client.close();
process.exit(0);
