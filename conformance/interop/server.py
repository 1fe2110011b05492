"""A server of the official Python SDK, with the names of our everything server.

`server.py --stdio`, or `server.py` with `PORT` in the environment, which prints `listening`.
"""

import os
import sys
import warnings

import anyio
import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.shared.exceptions import UrlElicitationRequiredError
from pydantic import BaseModel

warnings.simplefilter("ignore")
server = MCPServer("python-server", version="2.3.0")
held = {"running": 0, "cancelled": 0}
done = {"added": False, "consent": False}
WATCHED = "test://watched-resource"
CONSENT = {"message": "Please agree", "url": "https://example.com/consent"}


class User(BaseModel):
    username: str
    email: str


def modern(ctx):
    return ctx.protocol_version == "2026-07-28"


def answered(ctx, key):
    """The client's responses of a round, as plain data."""
    answer = (ctx.input_responses or {}).get(key)
    return answer.model_dump(by_alias=True) if isinstance(answer, BaseModel) else answer


@server.tool(structured_output=False)
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
async def test_elicitation(message: str, ctx: Context):
    if modern(ctx):
        answer = answered(ctx, "user")
        if answer:
            return f"User response: {answer['content']}"
        asked = types.ElicitRequestFormParams(message=message, requested_schema=User.model_json_schema())
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


@server.tool(structured_output=False)
async def test_sampling(prompt: str, ctx: Context):
    return await sample(prompt, ctx)


@server.tool(structured_output=False)
async def sample_in_task(prompt: str, ctx: Context):
    return await sample(prompt, ctx)


@server.tool(structured_output=False)
async def test_url_elicitation(ctx: Context):
    if modern(ctx):
        answer = answered(ctx, "url")
        if answer:
            return f"url: {answer['action']}"
        asked = types.ElicitRequestURLParams(**CONSENT)
        return types.InputRequiredResult(input_requests={"url": types.ElicitRequest(params=asked)})
    result = await ctx.elicit_url(elicitation_id="consent-1", **CONSENT)
    return f"url: {result.action}"


@server.tool(structured_output=False)
async def test_url_required() -> str:
    if done["consent"]:
        return "consented"
    done["consent"] = True
    raise UrlElicitationRequiredError([types.ElicitRequestURLParams(elicitation_id="consent-2", **CONSENT)])


@server.tool(structured_output=False)
async def test_input_required_result_request_state(ctx: Context):
    answer = answered(ctx, "confirm")
    if answer:
        return f"state-ok: {answer['content']['ok']}" if ctx.request_state == "the state" else "another state"
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    asked = types.ElicitRequestFormParams(message="Is this all right?", requested_schema=schema)
    requests = {"confirm": types.ElicitRequest(params=asked)}
    return types.InputRequiredResult(input_requests=requests, request_state="the state")


@server.tool(structured_output=False)
async def test_touch_resource(ctx: Context) -> str:
    if modern(ctx):
        await ctx.notify_resource_updated(WATCHED)
    else:
        await ctx.session.send_resource_updated(WATCHED)
    return "touched"


@server.tool(structured_output=False)
async def test_input_required_result_list_roots(ctx: Context):
    if modern(ctx):
        answer = answered(ctx, "roots")
        if answer:
            return f"{len(answer['roots'])} roots"
        return types.InputRequiredResult(input_requests={"roots": types.ListRootsRequest()})
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
    if modern(ctx):
        await ctx.notify_tools_changed()
    else:
        await ctx.session.send_tool_list_changed()
    return "the list of tools has changed"


@server.tool(structured_output=False)
async def test_reconnection(ctx: Context) -> str:
    await ctx.close_sse_stream()
    await anyio.sleep(0.1)
    return "Reconnection test completed successfully."


class Events(EventStore):
    """The event store for resumption."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events) - 1)

    async def replay_events_after(self, last_event_id, send_callback):
        stream, _ = self.events[int(last_event_id)]
        for number, (its_stream, message) in enumerate(self.events):
            if number > int(last_event_id) and its_stream == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


if "--stdio" in sys.argv:
    server.run("stdio")
else:
    # uvicorn logs when it listens: "Uvicorn running on …".
    port = int(os.environ.get("PORT", "0"))
    server.run("streamable-http", port=port, event_store=Events(), retry_interval=100)
