from fastmcp import FastMCP
from fastmcp_tasks import TasksExtension

mcp = FastMCP("shop")
mcp.add_extension(TasksExtension())


async def build(repo: str) -> str:
    return f"{repo}:1"


async def push(image: str, region: str) -> None:
    print(image, "to", region)


@mcp.tool(task=True)
async def deploy(repo: str, regions: list[str]) -> str:
    """Builds a repository and pushes it to every region; begins again after a crash."""
    image = await build(repo)
    for region in regions:
        await push(image, region)
    return f"{image} is out"


mcp.run()
