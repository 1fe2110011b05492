from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension

mcp = FastMCP("books")
mcp.add_extension(TasksExtension())


@mcp.tool(task=True)
async def translate(ctx: Context, pages: list[str]) -> str:
    """Translates a book, page by page. Only the log has the pages before the end."""
    done = []
    for page in pages:
        done.append(page.upper())
        await ctx.info(done[-1])
    return "\n".join(done)


mcp.run()
