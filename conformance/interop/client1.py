"""The official Python client, first major version: `client1.py VERSION URL`. A URL that ends in `/sse` is HTTP+SSE.
Reports each feature of `FEATURES` in the environment as `interop-client` does, with one line of JSON.
"""

import json
import os
import sys
import warnings
from contextlib import asynccontextmanager

import anyio
import mcp.types as types
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

warnings.simplefilter("ignore")
VERSION, URL = sys.argv[1:]
# The session always offers the newest version; the rest of it follows the version that the server agrees to.
types.LATEST_PROTOCOL_VERSION = VERSION
WATCHED = "test://watched-resource"
heard = {"logs": 0, "changes": 0, "progress": 0, "updates": 0}


async def elicited(context, params):
    if params.mode == "url":
        return types.ElicitResult(action="accept")
    return types.ElicitResult(action="accept", content={"username": "Ada", "email": "ada@example.com"})


async def sampled(context, params):
    content = types.TextContent(type="text", text="a sampled text")
    return types.CreateMessageResult(role="assistant", content=content, model="a-model", stopReason="endTurn")


async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///interop", name="interop")])


async def logged(message):
    heard["logs"] += 1


async def told(message):
    message = getattr(message, "root", message)
    if isinstance(message, types.ToolListChangedNotification):
        heard["changes"] += 1
    if isinstance(message, types.ResourceUpdatedNotification):
        heard["updates"] += 1


async def progressed(progress, total, message):
    heard["progress"] += 1


@asynccontextmanager
async def connect():
    transport = sse_client(URL) if URL.endswith("/sse") else streamable_http_client(URL)
    # Forms are a feature of later versions.
    form = elicited if VERSION >= "2025-06-18" else None
    handlers = {"elicitation_callback": form, "sampling_callback": sampled, "list_roots_callback": roots}
    async with transport as (read, write, *_):
        async with ClientSession(read, write, logging_callback=logged, message_handler=told, **handlers) as session:
            await session.initialize()
            yield session


def check(condition, why):
    if not condition:
        raise RuntimeError(why)


def text(result):
    return "\n".join(getattr(block, "text", "") for block in result.content)


async def says(session, name, expected, arguments=None, **more):
    result = await session.call_tool(name, arguments or {}, **more)
    check(not result.isError and expected in text(result), f"`{name}` says {text(result)}")


async def until(why, condition):
    for _ in range(50):
        if await condition():
            return
        await anyio.sleep(0.1)
    raise RuntimeError(why)


async def came(what):
    return heard[what] > 0


async def tools(session):
    listed = (await session.list_tools()).tools
    check(any(tool.name == "test_simple_text" for tool in listed), "the tool is not listed")
    await says(session, "test_simple_text", "simple text")


async def resources(session):
    await session.list_resources()
    check((await session.read_resource("test://static-text")).contents, "the resource is empty")


async def templates(session):
    listed = (await session.list_resource_templates()).resourceTemplates
    check(any(it.uriTemplate == "test://template/{id}/data" for it in listed), "the template is not listed")
    contents = (await session.read_resource("test://template/7/data")).contents
    check("ID: 7" in contents[0].text, f"it reads {contents}")


async def prompts(session):
    await session.list_prompts()
    prompt = await session.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
    check(prompt.messages, "the prompt is empty")


async def completion(session):
    reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    values = (await session.complete(reference, {"name": "arg1", "value": "te"})).completion.values
    check("test" in values, f"it completes to {values}")


async def logging(session):
    await session.set_logging_level("debug")
    await says(session, "test_tool_with_logging", "logged")
    await until("no log message came", lambda: came("logs"))


async def progress(session):
    await says(session, "test_tool_with_progress", "done", progress_callback=progressed)
    check(heard["progress"] > 1, f"{heard['progress']} notifications of progress came")


async def elicitation(session):
    await says(session, "test_elicitation", "ada@example.com", {"message": "Who are you?"})


async def url(session):
    await says(session, "test_url_elicitation", "url: accept")


async def url_required(session):
    await says(session, "test_url_required", "consented")


async def sampling(session):
    await says(session, "test_sampling", "a sampled text", {"prompt": "Say something"})


async def listing_roots(session):
    await says(session, "test_input_required_result_list_roots", "1 roots")


async def follow(session, name, arguments, expected):
    """Calls a tool as a task, and follows the task to its result."""
    created = await session.experimental.call_tool_as_task(name, arguments)
    # Waits for the end, and carries input requests meanwhile.
    result = await session.experimental.get_task_result(created.task.taskId, types.CallToolResult)
    check(expected in text(result), f"`{name}` says {text(result)}")


async def task(session):
    await follow(session, "slow_compute", {"seconds": 0.3, "label": "it"}, "it took")


async def task_input(session):
    await follow(session, "sample_in_task", {"prompt": "Say something"}, "a sampled text")


async def cancel(session):
    async def held(expected):
        try:
            await says(session, "held", expected)
            return True
        except RuntimeError:
            return False

    # This version does not cancel a call when its caller stops waiting, so the notification is sent by hand.
    request = session._request_id
    async with anyio.create_task_group() as group:
        group.start_soon(session.call_tool, "hold", {})
        # It gets the next request ID.
        await anyio.sleep(0.05)
        await until("the call does not run", lambda: held("running: 1"))
        params = types.CancelledNotificationParams(requestId=request)
        await session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        group.cancel_scope.cancel()
    await until("the call was not cancelled", lambda: held("cancelled: 1"))


async def listen(session):
    before = heard["changes"]
    await says(session, "test_trigger_tool_change", "changed")

    async def changed():
        return heard["changes"] > before

    await until("no change was heard of", changed)


async def subscribe(session):
    await session.subscribe_resource(WATCHED)

    async def touched():
        # A gateway subscribes at its upstream a moment later.
        await says(session, "test_touch_resource", "touched")
        return heard["updates"] > 0

    await until("no update was heard of", touched)


FEATURES = {
    "tools": tools,
    "resources": resources,
    "templates": templates,
    "prompts": prompts,
    "completion": completion,
    "logging": logging,
    "progress": progress,
    "elicitation": elicitation,
    "url": url,
    "url_required": url_required,
    "sampling": sampling,
    "gateway_state": sampling,
    "roots": listing_roots,
    "task": task,
    "task_input": task_input,
    "cancel": cancel,
    "listen": listen,
    "subscribe": subscribe,
}


async def main():
    async with connect() as session:
        for feature in os.environ["FEATURES"].split(","):
            why = None
            try:
                with anyio.fail_after(15):
                    await FEATURES[feature](session)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
            print(json.dumps({"feature": feature, "why": why}), flush=True)


anyio.run(main)
