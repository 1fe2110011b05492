"""A server of the official Python SDK, first major version, with the names of our everything server.

`server1.py --stdio`; or with `PORT` in the environment, over HTTP+SSE with `--sse`, else over Streamable HTTP.
"""

import os
import sys
import warnings

import anyio
import mcp.types as types
from mcp.server.fastmcp import Context, FastMCP
from mcp.shared.exceptions import UrlElicitationRequiredError
from pydantic import BaseModel

warnings.simplefilter("ignore")
server = FastMCP("python1-server", port=int(os.environ.get("PORT", "0")))
held = {"running": 0, "cancelled": 0}
done = {"added": False, "consent": False}
CONSENT = {"message": "Please agree", "url": "https://example.com/consent"}


class User(BaseModel):
    username: str
    email: str


@server.tool(structured_output=False)
async def test_simple_text() -> str:
    return "This is a simple text response for testing."


@server.resource("test://static-text")
async def static_text() -> str:
    return "text"


@server.resource("test://template/{id}/data")
async def template(id: str) -> str:
    return f"Data for ID: {id}"


@server.prompt()
async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"{arg1} {arg2}"


@server.completion()
async def complete(ref, argument, context):
    words = ["test", "testing", "value"]
    return types.Completion(values=[word for word in words if word.startswith(argument.value)])


@server.tool(structured_output=False)
async def test_tool_with_logging(ctx: Context) -> str:
    await ctx.info("a line")
    return "logged"


@server.tool(structured_output=False)
async def test_tool_with_progress(ctx: Context) -> str:
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100)
        await anyio.sleep(0.05)
    return "done"


@server.tool(structured_output=False)
async def test_elicitation(message: str, ctx: Context) -> str:
    result = await ctx.elicit(message, User)
    return f"User response: {result.data}"


async def sample(prompt, ctx):
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))
    result = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {result.content}"


@server.tool(structured_output=False)
async def test_sampling(prompt: str, ctx: Context) -> str:
    return await sample(prompt, ctx)


@server.tool(structured_output=False)
async def sample_in_task(prompt: str, ctx: Context) -> str:
    return await sample(prompt, ctx)


@server.tool(structured_output=False)
async def test_url_elicitation(ctx: Context) -> str:
    result = await ctx.session.elicit_url(elicitation_id="consent-1", related_request_id=ctx.request_id, **CONSENT)
    return f"url: {result.action}"


@server.tool(structured_output=False)
async def test_url_required() -> str:
    if done["consent"]:
        return "consented"
    done["consent"] = True
    raise UrlElicitationRequiredError([types.ElicitRequestURLParams(mode="url", elicitationId="consent-2", **CONSENT)])


@server.tool(structured_output=False)
async def test_input_required_result_list_roots(ctx: Context) -> str:
    return f"{len((await ctx.session.list_roots()).roots)} roots"


@server.tool(structured_output=False)
async def slow_compute(seconds: float, label: str) -> str:
    await anyio.sleep(seconds)
    return f"{label} took {seconds} seconds"


@server.tool(structured_output=False)
async def hold() -> str:
    held["running"] += 1
    try:
        await anyio.sleep(30)
    except anyio.get_cancelled_exc_class():
        held["cancelled"] += 1
        raise
    finally:
        held["running"] -= 1
    return "held"


@server.tool(name="held", structured_output=False)
async def how_held() -> str:
    return f"running: {held['running']}, cancelled: {held['cancelled']}"


async def test_added_tool() -> str:
    return "added"


@server.tool(structured_output=False)
async def test_trigger_tool_change(ctx: Context) -> str:
    done["added"] = not done["added"]
    if done["added"]:
        server.add_tool(test_added_tool)
    else:
        server.remove_tool("test_added_tool")
    await ctx.session.send_tool_list_changed()
    return "the list of tools has changed"


if "--stdio" in sys.argv:
    server.run("stdio")
else:
    # uvicorn logs when it listens: "Uvicorn running on …".
    server.run("sse" if "--sse" in sys.argv else "streamable-http")
