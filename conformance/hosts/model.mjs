// The host and its model, without the client package. A host calls a tool; if the result is pending, its
// model follows the text, or the structured content, until it has the result of the tool.
//
// `play(connect)` reads the plan from the first argument: `{url, command, host, timeoutMs, staggerMs, maxCalls,
// runs: [{key, tool, arguments, reads, transport}]}`. It prints one line of JSON per run: `{key, calls, turns,
// bytes, structuredBytes, text, error}`. `bytes` counts the texts of pending results, `structuredBytes` their
// structured content.

import { setTimeout as sleep } from "node:timers/promises";

/// Runs the plan. `connect(plan, run)` returns `{call(name, arguments), close()}` with its own connection.
export async function play(connect) {
  const plan = JSON.parse(process.argv[2]);
  await Promise.all(
    plan.runs.map(async (run, index) => {
      await sleep(index * plan.staggerMs);
      console.log(JSON.stringify({ key: run.key, ...(await attempt(connect, plan, run)) }));
    }),
  );
  process.exit(0);
}

async function attempt(connect, plan, run) {
  const report = { calls: 0, turns: 1, bytes: 0, structuredBytes: 0, text: null, error: null };
  let client;
  try {
    client = await connect(plan, run);
    await follow(client.call, plan, run, report);
  } catch (error) {
    report.error = `${error?.message ?? error}`;
  }
  // The process exits after all runs; a connection that does not close is not an error of the run.
  await Promise.race([Promise.resolve(client?.close()).catch(() => {}), sleep(2_000)]);
  return report;
}

/// Calls until a result is not pending. A turn of the model ends where it reads "stop here"; in the next turn
/// its user asks again.
async function follow(call, plan, run, report) {
  let next = { name: run.tool, arguments: run.arguments };
  while (report.calls < plan.maxCalls) {
    report.calls += 1;
    const result = await call(next.name, next.arguments);
    const text = (result.content ?? []).map((block) => block.text ?? "").join("\n");
    const task = result.structuredContent?.task;
    const isPending = run.reads === "text" ? /still running/i.test(text) : task?.status === "working";
    if (!isPending) {
      report.text = text || JSON.stringify(result.structuredContent);
      if (result.isError) report.error = `tool error: ${text}`;
      return;
    }
    report.bytes += Buffer.byteLength(text);
    report.structuredBytes += Buffer.byteLength(JSON.stringify(result.structuredContent ?? ""));
    const seen = run.reads === "text" ? text : `${task.instructions ?? ""}`;
    if (/stop here/i.test(seen)) report.turns += 1;
    next = (run.reads === "text" ? stepOfText(text) : stepOfTask(task)) ?? next;
  }
  report.error = `no result after ${report.calls} calls`;
}

/// The call that a text requests: "Call task_result with {…}". Later texts say "again".
function stepOfText(text) {
  const found = /call (\w+) with (\{[^}]*\})/i.exec(text);
  return found ? { name: found[1], arguments: JSON.parse(found[2]) } : null;
}

function stepOfTask(task) {
  if (task.next) return { name: task.next.tool, arguments: task.next.arguments };
  return task.id ? { name: "task_result", arguments: { task: task.id } } : null;
}
