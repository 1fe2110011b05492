"""A host with the official Python SDK, second major version, in 2026-07-28."""

from contextlib import asynccontextmanager

import anyio
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp_types import Implementation
from model import PLAN, TIMEOUT, play


@asynccontextmanager
async def connect(run):
    command = StdioServerParameters(command=PLAN["command"][0], args=PLAN["command"][1:])
    target = command if run["transport"] == "stdio" else PLAN["url"]
    info = Implementation(name=PLAN["host"], version="1")
    async with Client(target, mode="2026-07-28", client_info=info) as client:
        await client.list_tools()

        async def call(name, arguments):
            return await client.call_tool(name, arguments, read_timeout_seconds=TIMEOUT)

        yield call


anyio.run(play, connect)
