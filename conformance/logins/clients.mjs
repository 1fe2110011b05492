// The clients, with one interface: a version, the URL of a server, and steps. A step is a tool, a number of seconds to
// wait, or `logout`. The result has `text` or `error` for each tool.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { PATIENCE, run } from "./processes.mjs";

export function clients({ node, python, client, outlive, here }) {
  const all = {
    program: { name: "Outlive (command line)", play: program(outlive) },
    library: { name: "Outlive (library)", play: script(client) },
    TypeScript: { name: "The TypeScript client", play: script(node, join(here, "client.mjs")) },
  };
  if (python) all.Python = { name: "The Python client", play: script(python, join(here, "client.py")) };
  return all;
}

/// A program that runs all steps itself.
function script(...command) {
  return async ({ env }, version, url, steps, more = {}) => {
    const [first, ...args] = [...command, version, url, ...steps];
    const { code, out, err } = await run(first, args, { env: { ...env, ...more } });
    if (code !== 0) throw new Error(`it ended with ${code}: ${out}${err}`);
    return out.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  };
}

/// `outlive`: logs in first, unless the first step is `terminal`: then the calls run in a terminal and log in
/// themselves.
function program(outlive) {
  return async (stage, version, url, steps) => {
    const lines = [];
    const inTerminal = steps[0] === "terminal";
    if (!inTerminal) {
      const { code, out, err } = await run(outlive, ["login", url, "--json"], { env: stage.env });
      if (code !== 0) return [{ tool: "login", code, error: err }];
      lines.push({ tool: "login", text: out });
    }
    for (const step of steps.slice(inTerminal ? 1 : 0)) {
      const call = ["call", url, step, "--protocol-version", version];
      if (Number(step)) await sleep(1000 * Number(step));
      else if (step === "logout") lines.push(line(step, await run(outlive, ["logout", url, "--json"], { env: stage.env })));
      else if (inTerminal) lines.push(line(step, await terminal(stage, outlive, call)));
      else lines.push(line(step, await run(outlive, call, { env: stage.env })));
    }
    return lines;
  };
}

function line(tool, { code, out, err }) {
  return code === 0 ? { tool, text: out.trim() } : { tool, code, error: err };
}

let terminals = 0;

/// Runs a command in a terminal: standard output goes to a file, messages to the screen.
async function terminal({ env, folder }, outlive, args) {
  const number = ++terminals;
  const tmux = (...words) => run("tmux", ["-S", join(folder, `tmux-${number}`), "-f", "/dev/null", ...words], { env });
  const [out, ended] = [join(folder, `out-${number}`), join(folder, `ended-${number}`)];
  const words = [outlive, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  await tmux("new-session", "-d", "-x", "150", "-y", "50", `${words} >'${out}'; echo $? >'${ended}.new'; mv '${ended}.new' '${ended}'; exec cat`);
  try {
    for (let waited = 0; !existsSync(ended); waited += 50) {
      if (waited > PATIENCE) throw new Error(`it does not end; the screen says ${(await tmux("capture-pane", "-p")).out.trim()}`);
      await sleep(50);
    }
    const err = (await tmux("capture-pane", "-p")).out.trim();
    return { code: Number(readFileSync(ended, "utf8")), out: readFileSync(out, "utf8"), err };
  } finally {
    await tmux("kill-server");
  }
}
