"""The official Python client with our server: `client.py VERSION URL`, or `… VERSION -- PROGRAM ARGUMENT…`."""

import anyio
import features
import mcp_types as types
from features import COMMAND, MODE, MODERN, TARGET, WATCHED, says
from mcp import StdioServerParameters
from mcp.client.client import Client


async def elicited(context, params):
    if params.mode == "url":
        return types.ElicitResult(action="accept")
    known = {"username": "Ada", "email": "ada@example.com", "ok": True}
    wanted = params.requested_schema["properties"]
    return types.ElicitResult(action="accept", content={name: known[name] for name in wanted})


async def sampled(context, params):
    text = types.TextContent(type="text", text="a sampled text")
    return types.CreateMessageResult(role="assistant", content=text, model="a-model", stop_reason="endTurn")


async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///interop", name="interop")])


async def logging(client):
    if not MODERN:
        await client.set_logging_level("debug")
    await features.logging(client)


async def listen(client):
    if not MODERN:
        return await features.listen(client)
    async with client.listen(tools_list_changed=True) as changes:
        await says(client, "test_trigger_tool_change", "changed")
        async for _ in changes:
            return


async def subscribe(client):
    if not MODERN:
        return await features.subscribe(client)
    async with client.listen(resource_subscriptions=[WATCHED]) as updates:
        async with anyio.create_task_group() as group:

            async def touch():
                # A gateway subscribes at its upstream a moment later.
                while True:
                    await says(client, "test_touch_resource", "touched")
                    await anyio.sleep(0.1)

            group.start_soon(touch)
            async for _ in updates:
                break
            group.cancel_scope.cancel()


async def main():
    client = Client(
        StdioServerParameters(command=COMMAND[0], args=COMMAND[1:]) if TARGET == "--" else TARGET,
        mode=MODE,
        elicitation_callback=elicited,
        sampling_callback=sampled,
        list_roots_callback=roots,
        logging_callback=features.logged,
        log_level="debug" if MODERN else None,
        message_handler=features.told,
    )
    await features.play(client, logging=logging, listen=listen, subscribe=subscribe)


anyio.run(main)
