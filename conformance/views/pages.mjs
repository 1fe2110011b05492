// The two origins of the tests: the page of the host, and the sandbox proxy that MCP Apps require.

import { createServer } from "node:http";

/// The policy that a host must apply to a view without declared domains.
const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'unsafe-inline'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "media-src 'self' data:",
  "connect-src 'none'",
  "object-src 'none'",
  "base-uri 'none'",
].join("; ");

const HOST = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Host</title>
<style>
  :root { color-scheme: light dark } body { margin: 0; background: var(--page, light-dark(#faf9f5, #141413)) }
  main { padding: 24px } iframe { border: 1px solid light-dark(#dedee3, #3d3d45); border-radius: 12px; display: block; max-width: 100% }
</style><main></main><script src="/host.js"></script></html>`;

/// Loads the view into a frame without an origin, and passes messages on in both directions.
const SANDBOX = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Sandbox</title>
<style>html, body { margin: 0; height: 100% } iframe { border: 0; width: 100%; height: 100%; display: block }</style>
<script>
  const RESOURCE = "ui/notifications/sandbox-resource-ready";
  let view;
  addEventListener("message", ({ source, data }) => {
    if (source === parent && data?.method === RESOURCE) {
      view = document.createElement("iframe");
      view.name = "view";
      view.title = "Task";
      view.setAttribute("sandbox", data.params.sandbox);
      view.srcdoc = data.params.html;
      document.body.append(view);
    } else if (source === parent) {
      view?.contentWindow.postMessage(data, "*");
    } else if (source === view?.contentWindow) {
      parent.postMessage(data, "*");
    }
  });
  parent.postMessage({ jsonrpc: "2.0", method: "ui/notifications/sandbox-proxy-ready", params: {} }, "*");
</script></html>`;

/// Serves both pages. Returns their addresses.
export async function servePages(script) {
  const host = await listen({ "/": ["text/html", HOST], "/host.js": ["text/javascript", script] });
  const sandbox = await listen({ "/": ["text/html", SANDBOX, { "content-security-policy": POLICY }] });
  return { host, sandbox };
}

async function listen(files) {
  const server = createServer((request, response) => {
    const [type, body, headers] = files[request.url] ?? [];
    if (!body) return void response.writeHead(404).end();
    response.writeHead(200, { "content-type": `${type}; charset=utf-8`, ...headers }).end(body);
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  server.unref();
  return `http://127.0.0.1:${server.address().port}`;
}
