"""The tools of the transcripts, as async functions."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from outlive import Ambiguous, Cleanup, Context, Durable, Field, Outlive, Permanent, Result, ToolError

app = Outlive("transcripts")
Repo = Annotated[str, "Which repository."]


@dataclass
class Approval:
    yes: bool


@dataclass
class Order:
    name: Annotated[str, Field(min_length=1, max_length=40)]
    count: Annotated[int, Field(ge=1, le=9)]
    price: float | None = None
    express: bool = False
    toppings: list[Literal["cheese", "tomato"]] | None = None


@dataclass
class Image:
    name: str
    tag: int


async def nothing() -> None:
    pass


async def same(value: str) -> str:
    return value


@app.tool
async def greet(name: str) -> str:
    """Greets a person.

    Args:
        name: Name of the person.
    """
    return f"hello {name}"


@app.tool
async def build(ctx: Durable, repo: Repo) -> str:
    """Builds a repository and pushes it."""
    image = await ctx.step("build", same, f"{repo}:1")
    await ctx.step("push", nothing)
    return f"{image} is out"


@app.tool
async def deploy(ctx: Durable, repo: Repo) -> str:
    """Builds a repository, asks, and pushes it."""
    image = await ctx.step("build", same, f"{repo}:1")
    approval = await ctx.elicit("approve", f"Deploy {image}?", Approval, outcome=True)
    if not approval.content or not approval.content.yes:
        return "nothing happened"
    await ctx.step("push", nothing)
    return f"{image} is out"


@app.tool
async def nap(ctx: Durable) -> str:
    await ctx.sleep("soak", minutes=10)
    return "awake"


@app.tool
async def fetch(ctx: Durable, failure: Literal["transient", "permanent"]) -> None:
    def fail() -> None:
        raise Permanent("disk full") if failure == "permanent" else OSError("disk full")

    await ctx.step("fetch", fail)


@app.tool
async def flaky(ctx: Durable) -> str:
    tries = 0

    async def load() -> str:
        nonlocal tries
        tries += 1
        await ctx.emit("attempt")
        if tries == 1:
            raise OSError("connection lost")
        return "page"

    return await ctx.step("fetch", load, retry=3)


@app.tool
async def pay(ctx: Durable, amount: int) -> str:
    try:
        return await ctx.step("charge", lambda: f"receipt {amount}", once=True)
    except Ambiguous:
        return "unclear"


@app.tool
async def trio(ctx: Durable) -> str:
    return " ".join(await asyncio.gather(*(ctx.step(key, same, key) for key in "abc")))


@app.tool
async def rollout(ctx: Durable, regions: list[str]) -> str:
    order = ctx.scope("order")
    for region in regions:
        await order.step(("push", region), nothing)
    return "out"


@app.tool
async def inputs(ctx: Durable) -> str:
    go_on = await ctx.elicit("confirm", "Continue?", bool)
    size = await ctx.elicit("size", "Which size?", Literal["small", "large"])
    order = await ctx.elicit("order", "Your order?", Order, timeout=90, audience="caller")
    await ctx.elicit_url("login", "Log in first.", "https://example.com/login", audience=["ada", "bob"])
    summary = await ctx.sample("summary", "Summarize.", max_tokens=100)
    return f"{'yes' if go_on else 'no'} {size} {order.count} {order.name} {' '.join(order.toppings or [])} {summary['content']['text']}"


@app.tool
async def render(ctx: Durable) -> str:
    film = await ctx.external_event("film", str, timeout=86400)
    await ctx.step("submit", same, film.token)
    return f"film: {await film}"


@app.tool
async def count(ctx: Context, to: int) -> str:
    for number in range(1, to + 1):
        await ctx.emit(str(number))
    return "done"


@app.tool
async def stream(ctx: Durable) -> str:
    async def compile() -> None:
        await ctx.emit("compiling")

    await ctx.step("compile", compile)
    await ctx.scope("order").emit("packed")
    await ctx.emit("shipped")
    return "done"


@app.tool
async def report(kind: Literal["object", "blocks", "error"]) -> Any:
    if kind == "object":
        return {"count": 2}
    if kind == "error":
        raise ToolError("nothing found")
    return Result([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], structured={"count": 2})


@app.tool
async def status(ctx: Context) -> None:
    ctx.progress(1, 2, "half")
    ctx.set_status_message("packing")
    await ctx.warning({"free": 3})


@app.tool
async def order(ctx: Durable, fail: bool) -> str:
    await ctx.step("reserve", lambda: 7)
    await ctx.elicit("approve", "Order it?", Approval)
    return "ordered"


@order.cleanup
async def release(task: Cleanup, fail: bool) -> None:
    shelf = task.get("reserve", int)
    if fail:
        raise ToolError(f"shelf {shelf} is stuck")


@app.tool
async def token(ctx: Durable) -> int:
    return len(await ctx.step("token", same, "s3cret", secret=True))


@app.tool(handler_revision="2", migrate_journal={"1": lambda key, value: {"name": value, "tag": 1}})
async def shape(ctx: Durable) -> str:
    async def image() -> Image:
        return Image("shop", 2)

    found = await ctx.step("image", image)
    return f"{found.name}:{found.tag}"


@app.tool
async def identity(ctx: Durable) -> str:
    return f"{ctx.principal.name if ctx.principal else 'anonymous'} {ctx.idempotency_key('pay')}"


@app.tool
async def noisy() -> str:
    print('{"hello":1}')
    return "done"


app.run()
