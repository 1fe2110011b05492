import asyncio

from fastmcp import FastMCP
from fastmcp_tasks import TasksExtension

mcp = FastMCP("shop")
mcp.add_extension(TasksExtension())


async def reserve(item: str) -> int:
    return len(item)


async def free(shelf: int) -> None:
    print("freed", shelf)


@mcp.tool(task=True)
async def order(item: str) -> str:
    """Orders an item. Frees its shelf after a cancellation, unless the process is gone."""
    shelf = await reserve(item)
    try:
        await asyncio.sleep(0.1)
    except asyncio.CancelledError:
        await free(shelf)
        raise
    return f"ordered from shelf {shelf}"


mcp.run()
