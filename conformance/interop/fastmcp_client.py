"""The FastMCP client with its tasks and our server: `fastmcp_client.py VERSION URL`, or `… VERSION -- PROGRAM ARGUMENT…`."""

import anyio
import features
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp_tasks.client import call_tool_task
from features import COMMAND, MODE, TARGET, check, text, until

features.CALL["raise_on_error"] = False
features.ON_PROGRESS = "progress_handler"


async def elicited(message, response_type, params, context):
    if getattr(params, "mode", "form") == "url":
        return {}
    properties = (getattr(params, "requested_schema", None) or {}).get("properties", {})
    known = {"username": "Ada", "email": "ada@example.com", "name": "Ada", "confirm": True, "ok": True}
    return {name: known.get(name, True) for name in properties} or known


async def sampled(messages, params, context):
    return "a sampled text"


async def logging(client):
    await client.set_logging_level("debug")
    await features.logging(client)


async def tasks(client):
    # First as a call with an input request, then with a task handle, to its end and cancelled.
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


async def task(client):
    task = await call_tool_task(client, "slow_compute", {"seconds": 0.3, "label": "it"})
    result = await task.result()
    check("it took" in text(result), f"`slow_compute` says {text(result)}")


async def task_input(client):
    # A call of the tool follows its task, and responds to the input request in it.
    await features.says(client, "sample_in_task", "a sampled text", {"prompt": "Say something"})


async def main():
    client = Client(
        StdioTransport(command=COMMAND[0], args=COMMAND[1:]) if TARGET == "--" else TARGET,
        mode=MODE,
        roots=["file:///interop"],
        elicitation_handler=elicited,
        sampling_handler=sampled,
        log_handler=features.logged,
        message_handler=features.told,
    )
    # The last two only run if they are selected.
    own = {"task": task, "task_input": task_input} if features.SELECTED else {"tasks": tasks}
    await features.play(client, logging=logging, **own)


anyio.run(main)
