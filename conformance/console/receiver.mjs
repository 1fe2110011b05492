// Receives webhooks and verifies them: node receiver.mjs PORT SECRETS
//
// Prints its port, then one line of JSON for each message. The path decides how it responds: `hook` accepts after a
// moment, `fails` rejects the first attempt of each message, `slow` does not respond in time, `moved` redirects, `gone`
// has gone. Everything ends with standard input.

import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { Webhook } from "standardwebhooks";

const [port, secrets] = process.argv.slice(2);
const hooks = secrets.split(" ").map((secret) => new Webhook(secret));
const failed = new Set();
process.stdin.on("end", () => process.exit(0)).resume();

const RESPONSES = {
  hook: async () => {
    await sleep(100);
    return 200;
  },
  fails: async (id) => {
    const isFirst = !failed.has(id);
    failed.add(id);
    return isFirst ? 500 : 200;
  },
  slow: async () => {
    await sleep(60_000);
    return 200;
  },
  moved: async () => 302,
  gone: async () => 410,
};

/** Whether the message is valid under every secret. */
function isValid(body, headers) {
  return hooks.every((hook) => {
    try {
      hook.verify(body, headers);
      return true;
    } catch {
      return false;
    }
  });
}

const server = createServer(async (request, response) => {
  const path = request.url.slice(1);
  const chunks = [];
  try {
    for await (const chunk of request) chunks.push(chunk);
  } catch {
    // The sender was killed while it sent the message.
    return;
  }
  const body = Buffer.concat(chunks).toString();
  const id = request.headers["webhook-id"] ?? "";
  let said = {};
  try {
    said = JSON.parse(body);
  } catch {
    // A message that is not JSON has no task, which the test finds.
  }
  const line = { path, id, is_valid: isValid(body, request.headers), event: said.type ?? "", task: said.data?.task ?? "" };
  const print = (status) => console.log(JSON.stringify({ ...line, status, at: Date.now() }));
  const status = await (RESPONSES[path] ?? (async () => 404))(id);
  if (response.destroyed) return print(499);
  response.on("finish", () => print(status));
  if (status === 302) response.setHeader("Location", `http://127.0.0.1:${server.address().port}/stolen`);
  response.statusCode = status;
  response.end();
});
server.listen(Number(port), "127.0.0.1", () => console.log(server.address().port));
