"""A FastMCP server with its tasks, with the names of our everything server.

`fastmcp_server.py --stdio`, or `fastmcp_server.py` with `PORT` in the environment.
"""

import os
import sys
import warnings
from dataclasses import dataclass

import anyio
import mcp_types as types
import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.server.event_store import EventStore
from fastmcp_tasks import TasksExtension
from mcp.shared.exceptions import UrlElicitationRequiredError
from pydantic import BaseModel

warnings.simplefilter("ignore")
server = FastMCP("fastmcp-server", version="4.1.4")
# The queue is in the memory of this process.
server.add_extension(TasksExtension(url="memory://"))
held = {"running": 0, "cancelled": 0}
done = {"added": False, "consent": False}
WATCHED = "test://watched-resource"
CONSENT = {"message": "Please agree", "url": "https://example.com/consent"}
Said = str | types.InputRequiredResult


@dataclass
class User:
    username: str
    email: str


USER = {
    "type": "object",
    "properties": {"username": {"type": "string"}, "email": {"type": "string"}},
    "required": ["username", "email"],
}


def modern(ctx):
    return ctx.request_context.protocol_version == "2026-07-28"


def answered(ctx, key):
    """The client's responses of a round, as plain data."""
    answer = (ctx.input_responses or {}).get(key)
    return answer.model_dump(by_alias=True) if isinstance(answer, BaseModel) else answer


@server.tool(output_schema=None)
async def test_simple_text() -> str:
    return "This is a simple text response for testing."


@server.resource("test://static-text")
async def static_text() -> str:
    return "text"


@server.resource(WATCHED)
async def watched() -> str:
    return "watched"


@server.resource("test://template/{id}/data")
async def template(id: str) -> str:
    return f"Data for ID: {id}"


@server.prompt
async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"{arg1} {arg2}"


@server.completion
async def complete(ref, argument, context):
    words = ["test", "testing", "value"]
    return [word for word in words if word.startswith(argument.value)]


@server.tool(output_schema=None)
async def test_tool_with_logging(ctx: Context) -> str:
    await ctx.info("a line")
    return "logged"


@server.tool(output_schema=None)
async def test_tool_with_progress(ctx: Context) -> str:
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100)
        await anyio.sleep(0.05)
    return "done"


@server.tool(output_schema=None)
async def test_elicitation(message: str, ctx: Context) -> Said:
    if modern(ctx):
        answer = answered(ctx, "user")
        if answer:
            return f"User response: {answer['content']}"
        asked = types.ElicitRequestFormParams(message=message, requested_schema=USER)
        return types.InputRequiredResult(input_requests={"user": types.ElicitRequest(params=asked)})
    result = await ctx.elicit(message, User)
    return f"User response: {result.data}"


async def sample(prompt, ctx):
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))
    if modern(ctx):
        answer = answered(ctx, "llm")
        if answer:
            return f"LLM response: {answer['content']}"
        asked = types.CreateMessageRequestParams(messages=[message], max_tokens=100)
        return types.InputRequiredResult(input_requests={"llm": types.CreateMessageRequest(params=asked)})
    result = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {result.content}"


@server.tool(output_schema=None)
async def test_sampling(prompt: str, ctx: Context) -> Said:
    return await sample(prompt, ctx)


@server.tool(output_schema=None)
async def sample_in_task(prompt: str, ctx: Context) -> Said:
    return await sample(prompt, ctx)


@server.tool(output_schema=None)
async def test_url_elicitation(ctx: Context) -> Said:
    if modern(ctx):
        answer = answered(ctx, "url")
        if answer:
            return f"url: {answer['action']}"
        asked = types.ElicitRequestURLParams(**CONSENT)
        return types.InputRequiredResult(input_requests={"url": types.ElicitRequest(params=asked)})
    result = await ctx.session.elicit_url(elicitation_id="consent-1", related_request_id=ctx.request_id, **CONSENT)
    return f"url: {result.action}"


@server.tool(output_schema=None)
async def test_url_required() -> str:
    if done["consent"]:
        return "consented"
    done["consent"] = True
    raise UrlElicitationRequiredError([types.ElicitRequestURLParams(elicitation_id="consent-2", **CONSENT)])


@server.tool(output_schema=None)
async def test_input_required_result_request_state(ctx: Context) -> Said:
    answer = answered(ctx, "confirm")
    if answer:
        return f"state-ok: {answer['content']['ok']}" if ctx.request_state == "the state" else "another state"
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    asked = types.ElicitRequestFormParams(message="Is this all right?", requested_schema=schema)
    requests = {"confirm": types.ElicitRequest(params=asked)}
    return types.InputRequiredResult(input_requests=requests, request_state="the state")


@server.tool(output_schema=None)
async def test_input_required_result_list_roots(ctx: Context) -> Said:
    if modern(ctx):
        answer = answered(ctx, "roots")
        if answer:
            return f"{len(answer['roots'])} roots"
        return types.InputRequiredResult(input_requests={"roots": types.ListRootsRequest()})
    return f"{len((await ctx.session.list_roots()).roots)} roots"


@server.tool(task=True, output_schema=None)
async def slow_compute(seconds: float, label: str) -> str:
    await anyio.sleep(seconds)
    return f"{label} took {seconds} seconds"


@server.tool(output_schema=None)
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


@server.tool(name="held", output_schema=None)
async def how_held() -> str:
    return f"running: {held['running']}, cancelled: {held['cancelled']}"


async def test_added_tool() -> str:
    return "added"


@server.tool(output_schema=None)
async def test_trigger_tool_change(ctx: Context) -> str:
    done["added"] = not done["added"]
    if done["added"]:
        server.add_tool(test_added_tool)
    else:
        server.local_provider.remove_tool("test_added_tool")
    await ctx.send_notification(types.ToolListChangedNotification())
    return "the list of tools has changed"


@server.tool(output_schema=None)
async def test_reconnection(ctx: Context) -> str:
    # Fails if there is no stream to close, so that the feature cannot pass without one.
    await ctx.request_context.close_sse_stream()
    await anyio.sleep(0.1)
    return "Reconnection test completed successfully."


if "--stdio" in sys.argv:
    server.run("stdio", show_banner=False)
else:
    # uvicorn logs when it listens: "Uvicorn running on …".
    app = server.http_app(event_store=EventStore(), retry_interval=100)
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "0")))
