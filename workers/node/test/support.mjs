// Processes of tool workers for tests, and the transcripts.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const PROTOCOL = new URL("../../protocol/", import.meta.url);
const PACKAGE = new URL("../outlive.mjs", import.meta.url).href;
const TOOLS = JSON.parse(readFileSync(new URL("tools.json", PROTOCOL)));
const TIMEOUT = 30_000;

/** A process of the tool worker and its lines. */
export class Process {
  constructor(file, args = []) {
    this.nonce = randomBytes(16).toString("hex");
    this.child = spawn(process.execPath, [file, ...args], { env: { ...process.env, OUTLIVE_WORKER: "1", NODE_TEST_CONTEXT: undefined } });
    this.exited = once(this.child, "exit");
    this.child.stdin.on("error", () => {}); // The process may have exited.
    this.errors = "";
    this.closed = once(this.child.stderr.setEncoding("utf8").on("data", (text) => (this.errors += text)), "close");
    this.output = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  send(line) {
    this.child.stdin.write(`${JSON.stringify(line).replace('"$NONCE"', JSON.stringify(this.nonce))}\n`);
  }

  /** Returns the next line without its nonce. */
  async receive() {
    const { value, done } = await within(this.output.next(), "the tool worker has sent nothing");
    assert(!done, `the tool worker has ended its output: ${this.errors}`);
    const { nonce, ...line } = JSON.parse(value);
    assert.equal(nonce, this.nonce, value);
    return line;
  }

  async exitCode() {
    const [code] = await within(this.exited, "the tool worker has not exited");
    assert.deepEqual(await this.output.next(), { value: undefined, done: true }, "the tool worker has sent another line");
    await this.closed;
    return code;
  }

  async close() {
    this.child.kill("SIGKILL");
    await this.exited;
    await this.closed;
  }
}

function within(promise, text) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`${text} for ${TIMEOUT / 1000} s`)), TIMEOUT)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Fails if a line differs from the transcript. */
export function check(expected, actual, path = "line") {
  if (expected === "$ANY") return;
  if (expected === "$TOOLS") return assert.deepEqual(actual.map(({ code, ...tool }) => tool), TOOLS);
  if (typeof expected !== "object" || expected === null || Array.isArray(expected) || typeof actual !== "object" || actual === null) {
    return assert.deepEqual(actual, expected, path);
  }
  for (const name of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
    assert(Object.hasOwn(expected, name), `${path} has the member \`${name}\`: ${JSON.stringify(actual)}`);
    if (expected[name] === "$OPTIONAL") continue;
    assert(Object.hasOwn(actual, name), `${path} lacks the member \`${name}\`: ${JSON.stringify(actual)}`);
    check(expected[name], actual[name], `${path}.${name}`);
  }
}

const matches = (expected, actual) => {
  try {
    check(expected, actual);
    return true;
  } catch {
    return false;
  }
};

/** Returns the transcripts for packages: their names and lines. */
export function transcripts() {
  const files = readdirSync(PROTOCOL).filter((file) => file.endsWith(".jsonl"));
  const all = files.map((file) => readFileSync(new URL(file, PROTOCOL), "utf8").trim().split("\n").map((line) => JSON.parse(line)));
  return all.filter(([header]) => header.for.includes("package"));
}

/** Replays a transcript line for line. */
export async function replay(lines, file) {
  let worker;
  try {
    for (const [index, { S, W, any, kill, eof, exit }] of lines.entries()) {
      try {
        if (S?.welcome) {
          await worker?.close();
          worker = new Process(file);
        }
        if (S) worker.send(S);
        else if (W) {
          const line = await worker.receive();
          while (line.replayed && line.replayed.length < W.replayed?.length) line.replayed.push(...(await worker.receive()).replayed);
          check(W, line);
        } else if (any) {
          const left = any.map((sequence) => [...sequence]);
          while (left.some((sequence) => sequence.length)) {
            const line = await worker.receive();
            const sequence = left.find(([first]) => first && matches(first.W, line));
            assert(sequence, `${JSON.stringify(line)} matches no line`);
            sequence.shift();
          }
        } else if (kill) worker.child.kill("SIGKILL");
        else if (eof) worker.child.stdin.end();
        else if (exit !== undefined) assert.equal(await worker.exitCode(), exit);
      } catch (error) {
        throw new Error(`${lines[0].transcript}.jsonl:${index + 1}: ${error.message}\n${worker?.errors}`, { cause: error });
      }
    }
  } finally {
    await worker?.close();
  }
}

/** A tool worker that runs the text of a program, and the server's side of its pipes. */
export class Conversation extends Process {
  static async start(program, { dev = false, hello = true } = {}) {
    const folder = mkdtempSync(join(tmpdir(), "outlive-test-"));
    const file = join(folder, "tools.mjs");
    const head = `import * as outlive from ${JSON.stringify(PACKAGE)};\nconst { Outlive, t, ToolError, Permanent, Result } = outlive;\nconst app = new Outlive("test");\n`;
    writeFileSync(file, `${head}${program}\napp.run();\n`);
    const talk = new Conversation(file);
    talk.folder = folder;
    talk.send({ welcome: { protocol: 1, server: "test", nonce: "$NONCE", max_concurrent: 16, dev } });
    if (hello) talk.hello = (await talk.receive()).hello;
    return talk;
  }

  async close() {
    await super.close();
    rmSync(this.folder, { recursive: true });
  }

  call(tool, call = 1, args = {}, journal = {}) {
    this.send({ call, tool, arguments: args, journal, attempt: 1, idempotency_key: "k" });
  }

  /** Receives a line, and responds to a recorded result. Returns the line without its traceback. */
  async exchange() {
    const { traceback, ...line } = await this.receive();
    if ("done" in line || line.permanent) this.send({ call: line.call, recorded: line.done ?? line.failed });
    return line;
  }

  async lines(count) {
    const lines = [];
    while (lines.length < count) lines.push(await this.exchange());
    return lines;
  }

  /** Responds until the run ends. Returns its last line. */
  async last() {
    for (;;) {
      const line = await this.exchange();
      if (["return", "result", "error", "dropped", "incompatible"].some((name) => name in line)) return line;
    }
  }
}

/** Runs a conversation and closes it. */
export async function talking(program, body, options) {
  const talk = await Conversation.start(program, options);
  try {
    return await body(talk);
  } finally {
    await talk.close();
  }
}
