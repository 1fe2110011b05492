"""The tools of the transcripts, as `def` functions."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import transcript_tools
from outlive import Ambiguous, Cleanup, Outlive, Permanent, Result, ToolError
from outlive.blocking import Context, Durable
from transcript_tools import Approval, Image, Order, Repo

app = Outlive("transcripts")


def same(value: str) -> str:
    return value


def nothing() -> None:
    pass


@app.tool
def greet(name: str) -> str:
    """Greets a person.

    Args:
        name: Name of the person.
    """
    return f"hello {name}"


@app.tool
def build(ctx: Durable, repo: Repo) -> str:
    """Builds a repository and pushes it."""
    image = ctx.step("build", same, f"{repo}:1")
    ctx.step("push", nothing)
    return f"{image} is out"


@app.tool
def deploy(ctx: Durable, repo: Repo) -> str:
    """Builds a repository, asks, and pushes it."""
    image = ctx.step("build", same, f"{repo}:1")
    approval = ctx.elicit("approve", f"Deploy {image}?", Approval, outcome=True)
    if not approval.content or not approval.content.yes:
        return "nothing happened"
    ctx.step("push", nothing)
    return f"{image} is out"


@app.tool
def nap(ctx: Durable) -> str:
    ctx.sleep("soak", minutes=10)
    return "awake"


@app.tool
def fetch(ctx: Durable, failure: Literal["transient", "permanent"]) -> None:
    def fail() -> None:
        raise Permanent("disk full") if failure == "permanent" else OSError("disk full")

    ctx.step("fetch", fail)


@app.tool
def flaky(ctx: Durable) -> str:
    tries = 0

    def load() -> str:
        nonlocal tries
        tries += 1
        ctx.emit("attempt")
        if tries == 1:
            raise OSError("connection lost")
        return "page"

    return ctx.step("fetch", load, retry=3)


@app.tool
def pay(ctx: Durable, amount: int) -> str:
    try:
        return ctx.step("charge", lambda: f"receipt {amount}", once=True)
    except Ambiguous:
        return "unclear"


@app.tool
def trio(ctx: Durable) -> str:
    with ThreadPoolExecutor() as pool:
        return " ".join(pool.map(lambda key: ctx.step(key, same, key), "abc"))


@app.tool
def rollout(ctx: Durable, regions: list[str]) -> str:
    for region in regions:
        ctx.scope("order").step(("push", region), nothing)
    return "out"


@app.tool
def inputs(ctx: Durable) -> str:
    go_on = ctx.elicit("confirm", "Continue?", bool)
    size = ctx.elicit("size", "Which size?", Literal["small", "large"])
    order = ctx.elicit("order", "Your order?", Order, timeout=90, audience="caller")
    ctx.elicit_url("login", "Log in first.", "https://example.com/login", audience=["ada", "bob"])
    summary = ctx.sample("summary", "Summarize.", max_tokens=100)
    return f"{'yes' if go_on else 'no'} {size} {order.count} {order.name} {' '.join(order.toppings or [])} {summary['content']['text']}"


@app.tool
def render(ctx: Durable) -> str:
    film = ctx.external_event("film", str, timeout=86400)
    ctx.step("submit", same, film.token)
    return f"film: {film.wait()}"


@app.tool
def count(ctx: Context, to: int) -> str:
    for number in range(1, to + 1):
        ctx.emit(str(number))
    return "done"


@app.tool
def stream(ctx: Durable) -> str:
    ctx.step("compile", lambda: ctx.emit("compiling"))
    ctx.scope("order").emit("packed")
    ctx.emit("shipped")
    return "done"


@app.tool
def report(kind: Literal["object", "blocks", "error"]) -> Any:
    if kind == "object":
        return {"count": 2}
    if kind == "error":
        raise ToolError("nothing found")
    return Result([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], structured={"count": 2})


@app.tool
def status(ctx: Context) -> None:
    ctx.report_progress(1, 2, "half")
    ctx.set_status_message("packing")
    ctx.warning({"free": 3})


@app.tool
def order(ctx: Durable, fail: bool) -> str:
    ctx.step("reserve", lambda: 7)
    ctx.elicit("approve", "Order it?", Approval)
    return "ordered"


@order.cleanup
def release(task: Cleanup, fail: bool) -> None:
    shelf = task.get("reserve", int)
    if fail:
        raise ToolError(f"shelf {shelf} is stuck")


@app.tool
def token(ctx: Durable) -> int:
    return len(ctx.step("token", same, "s3cret", secret=True))


@app.tool(handler_revision="2", migrate_journal={"1": lambda key, value: {"name": value, "tag": 1}})
def shape(ctx: Durable) -> str:
    def image() -> Image:
        return Image("shop", 2)

    found = ctx.step("image", image)
    return f"{found.name}:{found.tag}"


@app.tool
def identity(ctx: Durable) -> str:
    return f"{ctx.principal.name if ctx.principal else 'anonymous'} {ctx.idempotency_key('pay')}"


@app.tool
def noisy() -> str:
    print('{"hello":1}')
    return "done"


assert set(app.tools) == set(transcript_tools.app.tools)
app.run()
