// The host of the tests: runs in the browser, with the official `AppBridge` and the official client.
//
// `main.mjs` bundles this file and calls `globalThis.host`. The view is in a frame in a frame: the outer one is the sandbox
// proxy, which has another origin, and the inner one has no origin at all.

import { AppBridge, getToolUiResourceUri, PostMessageTransport, RESOURCE_MIME_TYPE } from "@modelcontextprotocol/ext-apps/app-bridge";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const INFO = { name: "outlive-views", version: "1.0.0" };
const UI = { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: [RESOURCE_MIME_TYPE] } } };

let client;
let bridge;
const seen = { calls: [], contexts: [], messages: [], links: [], sizes: [], initialized: 0, problems: [] };

/// Connects the client. Returns the tools that name a view.
async function connect(address, capabilities = UI) {
  client = new Client(INFO, { capabilities });
  await client.connect(new StreamableHTTPClientTransport(new URL(address)));
  const { tools } = await client.listTools();
  return Object.fromEntries(tools.map((tool) => [tool.name, getToolUiResourceUri(tool) ?? null]));
}

/// Calls a tool as a model does.
const call = (name, args) => client.callTool({ name, arguments: args });

/// Shows the view of `task_result`, calls it, and gives the view its arguments and its result, as a host does.
async function show(task, { sandbox, width, hostContext }) {
  const { tools } = await client.listTools();
  const tool = tools.find((it) => it.name === "task_result");
  const { contents } = await client.readResource({ uri: getToolUiResourceUri(tool) });
  const [page] = contents;
  if (page.mimeType !== RESOURCE_MIME_TYPE) throw new Error(`the page is ${page.mimeType}`);
  const frame = document.createElement("iframe");
  frame.src = sandbox;
  frame.title = "Sandbox";
  frame.style.width = `${width}px`;
  document.querySelector("main").replaceChildren(frame);
  bridge = new AppBridge(client, INFO, { serverTools: {}, serverResources: {}, openLinks: {}, updateModelContext: {}, message: {} }, { hostContext });
  const ready = once("sandboxready"), initialized = once("initialized");
  bridge.addEventListener("sizechange", (size) => {
    seen.sizes.push(size);
    if (size.height) frame.style.height = `${size.height}px`;
  });
  bridge.onmessage = async (message) => (seen.messages.push(message), {});
  bridge.onupdatemodelcontext = async (context) => (seen.contexts.push(context), {});
  bridge.onopenlink = async (link) => (seen.links.push(link), {});
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  const forward = bridge.oncalltool;
  bridge.oncalltool = async (params, extra) => {
    const record = { name: params.name, arguments: params.arguments, at: Date.now() };
    seen.calls.push(record);
    try {
      return await forward(params, extra);
    } finally {
      record.end = Date.now();
    }
  };
  await ready;
  await bridge.sendSandboxResourceReady({ html: page.text, csp: page._meta?.ui?.csp, sandbox: "allow-scripts" });
  await initialized;
  seen.initialized += 1;
  await bridge.sendToolInput({ arguments: { task } });
  await bridge.sendToolResult(await call("task_result", { task }));
}

const once = (name) => new Promise((resolve) => bridge.addEventListener(name, resolve));

globalThis.host = {
  seen,
  connect,
  call,
  show,
  setContext: (context) => bridge.setHostContext(context),
  teardown: () => bridge.teardownResource({}).then(() => bridge.close()),
};
