"""The official Python client with our server: `client.py VERSION URL`, or `… VERSION -- PROGRAM ARGUMENT…`."""

import anyio
import features
import mcp_types as types
from features import COMMAND, MODE, MODERN, TARGET, says
from mcp import StdioServerParameters
from mcp.client.client import Client


async def elicited(context, params):
    return types.ElicitResult(action="accept", content={"username": "Ada", "email": "ada@example.com"})


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
    await features.play(client, logging=logging, listen=listen)


anyio.run(main)
