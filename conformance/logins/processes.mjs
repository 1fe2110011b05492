// Programs of a leg. They end with this process.

import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

/// Only a failing test waits this long.
export const PATIENCE = 120_000;
const running = new Set();

process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

/// Runs a program to its end and returns its exit code and output.
export async function run(program, args, options = {}) {
  const child = started(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const [out, err] = [gathered(child.stdout), gathered(child.stderr)];
  const patience = setTimeout(() => child.kill("SIGKILL"), PATIENCE);
  const code = await ended(child);
  clearTimeout(patience);
  return { code, out: await out, err: await err };
}

/// Starts a server and waits until it listens.
export async function serve(program, args, options = {}) {
  // Our servers end with their standard input.
  const child = started(program, args, { ...options, stdio: ["pipe", "ignore", "pipe"] });
  const said = [];
  await new Promise((listening, failed) => {
    createInterface(child.stderr).on("line", (line) => {
      said.push(line);
      if (/listening|http:\/\//i.test(line)) listening();
    });
    ended(child).then(() => failed(new Error(`${program} has ended: ${said.join("\n")}`)), failed);
  });
  return { said, stop: () => child.kill() };
}

/// Returns distinct free ports.
export async function freePorts(many) {
  const listeners = Array.from({ length: many }, () => createServer());
  const listen = (it) => new Promise((listening) => it.listen(0, "127.0.0.1", listening));
  await Promise.all(listeners.map(listen));
  const ports = listeners.map((it) => it.address().port);
  await Promise.all(listeners.map((it) => new Promise((closed) => it.close(closed))));
  return ports;
}

function started(program, args, options) {
  const child = spawn(program, args, options);
  running.add(child);
  child.on("exit", () => running.delete(child));
  return child;
}

function ended(child) {
  return new Promise((done, failed) => child.on("close", (code, signal) => done(code ?? signal)).on("error", failed));
}

async function gathered(stream) {
  let text = "";
  for await (const part of stream.setEncoding("utf8")) text += part;
  return text;
}
