from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension

mcp = FastMCP("shop")
mcp.add_extension(TasksExtension())


@mcp.tool(task=True)
async def deploy(ctx: Context, repo: str) -> str:
    """Deploys a repository."""
    approval = await ctx.elicit(f"Deploy {repo}?", response_type=bool)
    if approval.action != "accept" or not approval.data:
        return "nothing happened"
    return f"{repo} is deployed"


mcp.run()
