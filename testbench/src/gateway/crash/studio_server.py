"""An ordinary server on stdio, with the official Python SDK: `studio_server.py EXECUTIONS`.

Every call of a tool adds a line with its key to the file EXECUTIONS.
"""

import asyncio
import sys

from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel

server = FastMCP("studio", log_level="ERROR")


class Answer(BaseModel):
    word: str


def execute(key: str) -> None:
    with open(sys.argv[1], "a") as file:
        file.write(f"{key}\n")


@server.tool(structured_output=False)
async def render(key: str, steps: int, ctx: Context) -> str:
    """Renders a film, a step at a time."""
    execute(key)
    for step in range(1, steps + 1):
        await asyncio.sleep(0.1)
        await ctx.report_progress(step, steps, f"{key} step {step}")
    return f"rendered {key}"


@server.tool(structured_output=False)
async def confirm(key: str, ctx: Context) -> str:
    """Asks the user for a word."""
    execute(key)
    answer = await ctx.elicit(message=f"A word for {key}?", schema=Answer)
    word = answer.data.word if answer.action == "accept" else answer.action
    return f"{key} is {word}"


server.run()
