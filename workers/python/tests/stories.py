"""The stories of the guide, which type checkers read."""

from __future__ import annotations

import asyncio
import datetime
from dataclasses import dataclass
from typing import Annotated, AsyncIterator, Literal, TypedDict

import outlive
from outlive import Cleanup, Context, Durable, Field, Outcome, Outlive, Permanent, Result, TimedOut, ToolError, blocking

app = Outlive("shop")


@dataclass
class Approval:
    yes: bool  # a form has flat fields


class Image(TypedDict):
    name: str
    built_at: datetime.datetime


async def build(repo: str) -> Image:
    return {"name": f"{repo}:1", "built_at": datetime.datetime.now()}


def push(image: str, region: str) -> None:
    if region == "moon":
        raise Permanent("there is no region `moon`")


@app.lifespan
async def shared() -> AsyncIterator[None]:
    yield


@app.tool(task="auto", scopes=["shop:operate"], timeout=datetime.timedelta(hours=2))
async def deploy(ctx: Durable, repo: str, regions: list[str]) -> str:
    """Builds a repository and rolls it out, region by region.

    Args:
        repo: Which repository.
    """
    image = await ctx.step("build", build, repo)
    name: str = image["name"]
    if not (await ctx.elicit("approve", f"Deploy {name}?", Approval)).yes:
        return "nothing happened"
    for n, region in enumerate(regions):
        ctx.progress(n, len(regions), f"rolling out to {region}")
        await ctx.step(("push", region), push, name, region, retry=3)
        await ctx.emit(f"{region} done")
        await ctx.sleep(("soak", region), minutes=10)
    return f"{name} is out"


@deploy.cleanup
async def tidy(task: Cleanup, repo: str) -> None:
    image = task.get("build", Image)
    if image:
        print(f"delete {image['name']} of {repo}, {task.reason}")


@app.tool(read_only=True)
async def search(ctx: Context, words: str, limit: Annotated[int, Field("How many.", ge=1, le=50)] = 10) -> list[str]:
    """Searches the shop."""
    await ctx.info(f"searching {words}")
    if not words:
        raise ToolError("nothing found")
    return [words] * limit


@app.tool
def ask(ctx: blocking.Durable, sizes: list[Literal["s", "l"]]) -> Result:
    """Asks for details, in a thread."""
    outcome: Outcome[Approval] = ctx.elicit("sure", "Really?", Approval, outcome=True)
    accepted: bool = ctx.elicit("more", "More?", bool, audience={"scope": "shop:approve"})
    number: int = ctx.step("number", lambda: 3)
    event = ctx.external_event("film", str, timeout=60)
    film = event.wait()
    return Result([{"type": "text", "text": f"{outcome.action} {accepted} {number} {film} {sizes}"}])


@app.tool
async def race(ctx: Durable) -> str:
    """Runs branches in parallel."""
    first, second = await asyncio.gather(ctx.step("a", build, "a"), ctx.scope("b").step("a", build, "b"))
    try:
        approval = await ctx.elicit("go", "Go?", Approval, timeout=60)
    except TimedOut:
        return first["name"]
    return second["name"] if approval.yes else ctx.idempotency_key("go")


def test_deploy() -> None:
    outcome = outlive.test(deploy, repo="shop", regions=["eu"]).accept("approve", yes=True).crash_after_each()
    assert outcome.text == "shop:1 is out" and outcome.steps == ["build", "push/eu"] and outcome.executed["build"] == 1


app.run()
