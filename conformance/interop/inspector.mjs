// The Inspector's `--cli` with our server: `node inspector.mjs VERSION URL`, or `… VERSION -- PROGRAM ARGUMENT…`.
// It is started once per method, and its output is checked.

import { execFileSync } from "node:child_process";

const [version, ...target] = process.argv.slice(2);
const era = version === "2026-07-28" ? "modern" : "legacy";
const program = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";

function run(expected, method, ...args) {
  const to = target[0] === "--" ? target.slice(1) : target;
  const words = [program, "--cli", ...to, "--protocol-era", era, "--method", method, ...args];
  const said = execFileSync(process.execPath, words, { encoding: "utf8", timeout: 30_000, stdio: ["ignore", "pipe", "pipe"] });
  if (!said.includes(expected)) throw new Error(`${method} prints ${said}`);
}

function report(feature, ...runs) {
  let why = null;
  try {
    for (const words of runs) run(...words);
  } catch (error) {
    why = `${error.stderr || error.message}`;
  }
  console.log(JSON.stringify({ feature, why }));
}

report("tools", ["test_simple_text", "tools/list"], ["simple text", "tools/call", "--tool-name", "test_simple_text"]);
report("resources", ["test://static-text", "resources/list"], ["static text resource", "resources/read", "--uri", "test://static-text"]);
const prompt = "test_prompt_with_arguments";
report("prompts", [prompt, "prompts/list"], ["arg1='one'", "prompts/get", "--prompt-name", prompt, "--prompt-args", "arg1=one", "arg2=two"]);
