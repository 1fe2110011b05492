import asyncio

from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension

mcp = FastMCP("films")
mcp.add_extension(TasksExtension())


@mcp.tool(task=True)
async def render(ctx: Context, film: str, frames: int) -> str:
    """Renders a film."""
    for frame in range(frames):
        await ctx.report_progress(frame, frames, f"frame {frame}")
        await asyncio.sleep(0.1)
    return f"{film} is rendered"


mcp.run()
