"""The features that the Python clients test with our server: `CLIENT.py VERSION URL` or `… VERSION -- PROGRAM ARGUMENT…`.
Reports each feature as `interop-client` does, with one line of JSON. `FEATURES` in the environment selects them.

This file covers names that differ between two clients; larger differences are in the files of the clients.
"""

import json
import os
import sys
import warnings

import anyio
import mcp_types as types

warnings.simplefilter("ignore")
VERSION, TARGET, *COMMAND = sys.argv[1:]
MODERN = VERSION == "2026-07-28"
MODE = VERSION if MODERN else "legacy"
SELECTED = os.environ.get("FEATURES", "").split(",") if "FEATURES" in os.environ else None
WATCHED = "test://watched-resource"
heard = {"logs": 0, "changes": 0, "progress": 0, "updates": 0}

# The options of each tool call, and the name of the progress callback parameter.
CALL = {}
ON_PROGRESS = "progress_callback"


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


def check(condition, why):
    if not condition:
        raise RuntimeError(why)


def text(result):
    return "\n".join(getattr(block, "text", "") for block in result.content)


async def says(client, name, expected, arguments=None, **more):
    result = await client.call_tool(name, arguments or {}, **CALL, **more)
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
    listed = getattr(listed, "tools", listed)
    check(any(tool.name == "test_simple_text" for tool in listed), "the tool is not listed")
    await says(client, "test_simple_text", "simple text")


async def resources(client):
    await client.list_resources()
    read = await client.read_resource("test://static-text")
    check(getattr(read, "contents", read), "the resource is empty")


async def prompts(client):
    await client.list_prompts()
    prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
    check(prompt.messages, "the prompt is empty")


async def completion(client):
    reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    result = await client.complete(reference, {"name": "arg1", "value": "te"})
    values = getattr(result, "completion", result).values
    check("test" in values, f"it completes to {values}")


async def logging(client):
    await says(client, "test_tool_with_logging", "logged")
    await until("no log message came", lambda: came("logs"))


async def progress(client):
    await says(client, "test_tool_with_progress", "done", **{ON_PROGRESS: progressed})
    check(heard["progress"] > 1, f"{heard['progress']} notifications of progress came")


async def elicitation(client):
    await says(client, "test_elicitation", "ada@example.com", {"message": "Who are you?"})


async def sampling(client):
    await says(client, "test_sampling", "a sampled text", {"prompt": "Say something"})


async def listing_roots(client):
    await says(client, "test_input_required_result_list_roots", "1 roots")


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
    before = heard["changes"]
    await says(client, "test_trigger_tool_change", "changed")

    async def changed():
        return heard["changes"] > before

    await until("no change was heard of", changed)


async def resumption(client):
    await says(client, "test_reconnection", "completed successfully")


async def url(client):
    await says(client, "test_url_elicitation", "url: accept")


async def url_required(client):
    await says(client, "test_url_required", "consented")


async def templates(client):
    listed = await client.list_resource_templates()
    listed = getattr(listed, "resource_templates", listed)
    check(any(it.uri_template == "test://template/{id}/data" for it in listed), "the template is not listed")
    read = await client.read_resource("test://template/7/data")
    contents = getattr(read, "contents", read)
    check("ID: 7" in contents[0].text, f"it reads {contents}")


async def subscribe(client):
    await getattr(client, "session", client).subscribe_resource(WATCHED)

    async def touched():
        # A gateway subscribes at its upstream a moment later.
        await says(client, "test_touch_resource", "touched")
        return heard["updates"] > 0

    await until("no update was heard of", touched)


async def state(client):
    await says(client, "test_input_required_result_request_state", "state-ok")


# Not in the default run: `cargo xtask interop --gateway` selects these.
MORE = {
    "url": url,
    "url_required": url_required,
    "templates": templates,
    "subscribe": subscribe,
    "state": state,
    "gateway_state": sampling,
}
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
    "tasks": None,
    "cancel": cancel,
    "listen": listen,
}
if not MODERN and TARGET != "--":
    FEATURES["resumption"] = resumption


async def play(client, **own):
    """Tests all features with a client, some with its own functions, and reports each."""
    async with client:
        for feature, run in (MORE | FEATURES | own).items():
            if run is None or feature not in (SELECTED or FEATURES):
                continue
            why = None
            try:
                with anyio.fail_after(15):
                    await run(client)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
            print(json.dumps({"feature": feature, "why": why}), flush=True)
