// The official TypeScript client, first major version: `node client1.mjs VERSION URL`. A URL that ends in `/sse` is HTTP+SSE.
// Reports each feature of `FEATURES` in the environment as `interop-client` does: one line of JSON each.

import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks";
import * as types from "@modelcontextprotocol/sdk/types.js";

const [version, url] = process.argv.slice(2);
const selected = process.env.FEATURES.split(",");
const hosts = selected.includes("hosted");
const capabilities = {
  sampling: {},
  roots: {},
  // Later versions added the other capabilities.
  ...(version >= "2025-06-18" ? { elicitation: version >= "2025-11-25" ? { form: {}, url: {} } : {} } : {}),
  ...(hosts ? { tasks: { requests: { sampling: { createMessage: {} } } } } : {}),
};
const client = new Client({ name: "ts1-client", version: "1.32.2" }, { capabilities, ...(hosts ? { taskStore: new InMemoryTaskStore() } : {}) });
// The client rejects handlers of capabilities that it does not declare.
if (capabilities.elicitation) {
  client.setRequestHandler(types.ElicitRequestSchema, async ({ params }) => {
    if (params.mode === "url") return { action: "accept" };
    return { action: "accept", content: { username: "Ada", email: "ada@example.com" } };
  });
}
client.setRequestHandler(types.CreateMessageRequestSchema, async ({ params }, extra) => {
  const message = { role: "assistant", content: { type: "text", text: "a sampled text" }, model: "a-model", stopReason: "endTurn" };
  if (!params.task) return message;
  const task = await extra.taskStore.createTask({ ttl: params.task.ttl ?? 60_000, pollInterval: 100 });
  await extra.taskStore.storeTaskResult(task.taskId, "completed", message);
  return { task };
});
client.setRequestHandler(types.ListRootsRequestSchema, async () => ({ roots: [{ uri: "file:///interop", name: "interop" }] }));
const heard = { logs: 0, changes: 0, updates: 0 };
client.setNotificationHandler(types.LoggingMessageNotificationSchema, () => void (heard.logs += 1));
client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => void (heard.changes += 1));
client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, () => void (heard.updates += 1));
const transport = url.endsWith("/sse") ? new SSEClientTransport(new URL(url)) : new StreamableHTTPClientTransport(new URL(url));
// The client always offers its newest version; the rest of it follows the version that the server agrees to.
const send = transport.send.bind(transport);
transport.send = (message, options) => {
  if (message.method === "initialize") message.params.protocolVersion = version;
  return send(message, options);
};
await client.connect(transport);

async function says(name, expected, args = {}, options = {}) {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
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

/// Calls a tool as a task, and follows the task to its result.
async function follow(name, args, expected) {
  let isTask = false;
  for await (const message of client.experimental.tasks.callToolStream({ name, arguments: args }, undefined, { task: { ttl: 60_000 } })) {
    if (message.type === "taskCreated") isTask = true;
    if (message.type === "error") throw message.error;
    if (message.type !== "result") continue;
    const said = JSON.stringify(message.result);
    if (!isTask || !said.includes(expected)) throw new Error(`task: ${isTask}, result: ${said}`);
    return;
  }
  throw new Error("the task has no result");
}

const holding = (expected) => says("held", expected).then(() => true, () => false);
const sampled = () => says("test_sampling", "a sampled text", { prompt: "Say something" });
const features = {
  tools: async () => {
    const { tools } = await client.listTools();
    if (!tools.some((tool) => tool.name === "test_simple_text")) throw new Error("the tool is not listed");
    await says("test_simple_text", "simple text");
  },
  resources: async () => {
    await client.listResources();
    const { contents } = await client.readResource({ uri: "test://static-text" });
    if (!contents.length) throw new Error("the resource is empty");
  },
  templates: async () => {
    const { resourceTemplates } = await client.listResourceTemplates();
    if (!resourceTemplates.some((it) => it.uriTemplate === "test://template/{id}/data")) throw new Error("the template is not listed");
    const { contents } = await client.readResource({ uri: "test://template/7/data" });
    if (!contents[0].text.includes("ID: 7")) throw new Error(JSON.stringify(contents));
  },
  prompts: async () => {
    await client.listPrompts();
    const { messages } = await client.getPrompt({ name: "test_prompt_with_arguments", arguments: { arg1: "one", arg2: "two" } });
    if (!messages.length) throw new Error("the prompt is empty");
  },
  completion: async () => {
    const ref = { type: "ref/prompt", name: "test_prompt_with_arguments" };
    const { completion } = await client.complete({ ref, argument: { name: "arg1", value: "te" } });
    if (!completion.values.includes("test")) throw new Error(`it completes to ${completion.values}`);
  },
  logging: async () => {
    await client.setLoggingLevel("debug");
    await says("test_tool_with_logging", "logged");
    await until("no log message came", () => heard.logs > 0);
  },
  progress: async () => {
    let came = 0;
    await says("test_tool_with_progress", "done", {}, { onprogress: () => void (came += 1) });
    if (came < 2) throw new Error(`${came} notifications of progress came`);
  },
  elicitation: () => says("test_elicitation", "ada@example.com", { message: "Who are you?" }),
  url: () => says("test_url_elicitation", "url: accept"),
  url_required: () => says("test_url_required", "consented"),
  sampling: sampled,
  gateway_state: sampled,
  hosted: sampled,
  roots: () => says("test_input_required_result_list_roots", "1 roots"),
  task: () => follow("slow_compute", { seconds: 0.3, label: "it" }, "it took"),
  task_input: () => follow("sample_in_task", { prompt: "Say something" }, "a sampled text"),
  cancel: async () => {
    const abort = new AbortController();
    const call = says("hold", "", {}, { signal: abort.signal }).catch(() => {});
    await until("the call does not run", () => holding("running: 1"));
    abort.abort();
    await until("the call was not cancelled", () => holding("cancelled: 1"));
    await call;
  },
  listen: async () => {
    const before = heard.changes;
    await says("test_trigger_tool_change", "changed");
    await until("no change was heard of", () => heard.changes > before);
  },
  subscribe: async () => {
    await client.subscribeResource({ uri: "test://watched-resource" });
    // A gateway subscribes at its upstream a moment later.
    await until("no update was heard of", async () => {
      await says("test_touch_resource", "touched");
      return heard.updates > 0;
    });
  },
};

for (const feature of selected) {
  let why = null;
  try {
    if (!features[feature]) throw new Error("the client has no such feature");
    const late = sleep(15_000, undefined, { ref: false }).then(() => Promise.reject(new Error("nothing within 15 seconds")));
    await Promise.race([features[feature](), late]);
  } catch (error) {
    why = `${error.message ?? error}`;
  }
  console.log(JSON.stringify({ feature, why }));
}
await client.close();
process.exit(0);
