"""A FastMCP server with one slow tool, for comparison: `fastmcp_server.py EXECUTIONS` on the port of `PORT`."""

import os
import sys

import anyio
import uvicorn
from fastmcp import FastMCP
from fastmcp_tasks import TasksExtension

server = FastMCP("comparison")
server.add_extension(TasksExtension())


@server.tool(task=True, output_schema=None)
async def render(key: str, step: float) -> str:
    """Renders the frames of a film."""
    with open(sys.argv[1], "a") as executions:
        executions.write(f"{key}\n")
    for _ in range(10):
        await anyio.sleep(step)
    return f"rendered {key}"


# uvicorn logs when it listens: "Uvicorn running on …".
uvicorn.run(server.http_app(), host="127.0.0.1", port=int(os.environ["PORT"]))
