"""The client of FastMCP with its tasks, at our server: `fastmcp_client.py VERSION URL`, or `… VERSION -- PROGRAM ARGUMENT…`.

Says how each feature went as `interop-client` does: a line of JSON for each.
"""

import json
import sys
import warnings

import anyio
import mcp_types as types
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp_tasks.client import call_tool_task

warnings.simplefilter("ignore")
VERSION, TARGET, *COMMAND = sys.argv[1:]
MODERN = VERSION == "2026-07-28"
heard = {"logs": 0, "changes": 0, "progress": 0}


async def elicited(message, response_type, params, context):
    properties = (getattr(params, "requested_schema", None) or {}).get("properties", {})
    known = {"username": "Ada", "email": "ada@example.com", "name": "Ada", "confirm": True}
    return {name: known.get(name, True) for name in properties} or known


async def sampled(messages, params, context):
    return "a sampled text"


async def logged(message):
    heard["logs"] += 1


async def told(message):
    notification = getattr(message, "root", message)
    if isinstance(notification, types.ToolListChangedNotification):
        heard["changes"] += 1


async def progressed(progress, total, message):
    heard["progress"] += 1


def check(condition, why):
    if not condition:
        raise RuntimeError(why)


def text(result):
    return "\n".join(getattr(block, "text", "") for block in result.content)


async def says(client, name, expected, arguments=None, **more):
    result = await client.call_tool(name, arguments or {}, raise_on_error=False, **more)
    check(not result.is_error and expected in text(result), f"`{name}` says {text(result)}")


async def until(why, condition):
    for _ in range(50):
        if await condition():
            return
        await anyio.sleep(0.1)
    raise RuntimeError(why)


async def came(what):
    return heard[what] > 0


async def tools(client):
    listed = await client.list_tools()
    check(any(tool.name == "test_simple_text" for tool in listed), "the tool is not listed")
    await says(client, "test_simple_text", "simple text")


async def resources(client):
    await client.list_resources()
    check(await client.read_resource("test://static-text"), "the resource is empty")


async def prompts(client):
    await client.list_prompts()
    prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
    check(prompt.messages, "the prompt is empty")


async def completion(client):
    reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    result = await client.complete(reference, {"name": "arg1", "value": "te"})
    check("test" in result.values, f"it completes to {result.values}")


async def logging(client):
    await client.set_logging_level("debug")
    await says(client, "test_tool_with_logging", "logged")
    await until("no log message came", lambda: came("logs"))


async def progress(client):
    await says(client, "test_tool_with_progress", "done", progress_handler=progressed)
    check(heard["progress"] > 1, f"{heard['progress']} notifications of progress came")


async def elicitation(client):
    await says(client, "test_elicitation", "ada@example.com", {"message": "Who are you?"})


async def sampling(client):
    await says(client, "test_sampling", "a sampled text", {"prompt": "Say something"})


async def listing_roots(client):
    await says(client, "test_input_required_result_list_roots", "1 roots")


async def tasks(client):
    # Seen as a call, with a question on the way; then by a handle, to its end and cancelled.
    result = await client.call_tool("confirm_delete", {"filename": "a.txt"}, raise_on_error=False)
    check(not result.is_error, f"`confirm_delete` says {text(result)}")
    task = await call_tool_task(client, "slow_compute", {"seconds": 1, "label": "interop"})
    result = await task.result()
    check(not result.is_error, f"`slow_compute` says {text(result)}")
    task = await call_tool_task(client, "slow_compute", {"seconds": 60, "label": "interop"})
    await task.cancel()

    async def ended():
        return (await task.status()).status == "cancelled"

    await until("the task was not cancelled", ended)


async def cancel(client):
    async def held(expected):
        try:
            await says(client, "held", expected)
            return True
        except RuntimeError:
            return False

    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "hold", {})
        await until("the call does not run", lambda: held("running: 1"))
        group.cancel_scope.cancel()
    await until("the call was not cancelled", lambda: held("cancelled: 1"))


async def listen(client):
    await says(client, "test_trigger_tool_change", "changed")
    await until("no change was heard of", lambda: came("changes"))


async def resumption(client):
    await says(client, "test_reconnection", "completed successfully")


FEATURES = {
    "tools": tools,
    "resources": resources,
    "prompts": prompts,
    "completion": completion,
    "logging": logging,
    "progress": progress,
    "elicitation": elicitation,
    "sampling": sampling,
    "roots": listing_roots,
    "tasks": tasks,
    "cancel": cancel,
    "listen": listen,
}


async def main():
    if TARGET == "--":
        target = StdioTransport(command=COMMAND[0], args=COMMAND[1:])
    else:
        target = TARGET
    features = dict(FEATURES)
    if not MODERN and TARGET != "--":
        features["resumption"] = resumption
    client = Client(
        target,
        mode=VERSION if MODERN else "legacy",
        roots=["file:///interop"],
        elicitation_handler=elicited,
        sampling_handler=sampled,
        log_handler=logged,
        message_handler=told,
    )
    async with client:
        for feature, run in features.items():
            why = None
            try:
                with anyio.fail_after(15):
                    await run(client)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
            print(json.dumps({"feature": feature, "why": why}), flush=True)


anyio.run(main)
