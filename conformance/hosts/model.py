"""The host and its model, without the client package, as in `model.mjs`."""

import json
import re
import sys

import anyio

PLAN = json.loads(sys.argv[1])
TIMEOUT = PLAN["timeoutMs"] / 1000


async def play(connect):
    """Runs the plan. `connect(run)` is a context manager with `call(name, arguments)`."""
    async with anyio.create_task_group() as group:
        for index, run in enumerate(PLAN["runs"]):
            group.start_soon(attempt, connect, run, index * PLAN["staggerMs"] / 1000)


async def attempt(connect, run, delay):
    await anyio.sleep(delay)
    report = {"key": run["key"], "calls": 0, "turns": 1, "bytes": 0, "structuredBytes": 0, "text": None, "error": None}
    try:
        async with connect(run) as call:
            # Caught inside: the context would wrap the error in a group.
            try:
                await follow(call, run, report)
            except Exception as error:
                report["error"] = str(error) or repr(error)
    except Exception as error:
        # A connection that does not close is not an error of the run.
        if report["text"] is None and report["error"] is None:
            report["error"] = str(error) or repr(error)
    print(json.dumps(report), flush=True)


async def follow(call, run, report):
    name, arguments = run["tool"], run["arguments"]
    while report["calls"] < PLAN["maxCalls"]:
        report["calls"] += 1
        result = await call(name, arguments)
        structured = getattr(result, "structured_content", None) or getattr(result, "structuredContent", None) or {}
        is_error = getattr(result, "is_error", None) or getattr(result, "isError", None)
        text = "\n".join(getattr(block, "text", "") for block in result.content)
        task = structured.get("task") or {}
        reads_text = run["reads"] == "text"
        if not (re.search("still running", text, re.I) if reads_text else task.get("status") == "working"):
            report["text"] = text or json.dumps(structured)
            if is_error:
                report["error"] = f"tool error: {text}"
            return
        report["bytes"] += len(text.encode())
        report["structuredBytes"] += len(json.dumps(structured, separators=(",", ":")).encode())
        if re.search("stop here", text if reads_text else str(task.get("instructions")), re.I):
            report["turns"] += 1
        name, arguments = (step_of_text(text) if reads_text else step_of_task(task)) or (name, arguments)
    report["error"] = f"no result after {report['calls']} calls"


def step_of_text(text):
    found = re.search(r"call (\w+) with (\{[^}]*\})", text, re.I)
    return found and (found[1], json.loads(found[2]))


def step_of_task(task):
    if task.get("next"):
        return task["next"]["tool"], task["next"]["arguments"]
    return ("task_result", {"task": task["id"]}) if task.get("id") else None
