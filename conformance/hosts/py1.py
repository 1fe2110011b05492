"""A host with the official Python SDK, first major version."""

from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation
from model import PLAN, TIMEOUT, play


@asynccontextmanager
async def connect(run):
    command = StdioServerParameters(command=PLAN["command"][0], args=PLAN["command"][1:])
    transport = stdio_client(command) if run["transport"] == "stdio" else streamable_http_client(PLAN["url"])
    async with transport as (read, write, *_):
        async with ClientSession(read, write, client_info=Implementation(name=PLAN["host"], version="1")) as session:
            await session.initialize()
            # The client validates structured content against the schemas of this list.
            await session.list_tools()

            async def call(name, arguments):
                return await session.call_tool(name, arguments, read_timeout_seconds=timedelta(seconds=TIMEOUT))

            yield call


anyio.run(play, connect)
