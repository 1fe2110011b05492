"""Tools of `cargo xtask workers`. Steps append one line per execution to the file of `EXECUTIONS`."""

import asyncio
import os
import time
from typing import Any

from outlive import Durable, Outlive

app = Outlive("bench")
EXECUTIONS = os.environ["EXECUTIONS"]
HERE: dict[str, int] = {}
COMPLETE = asyncio.Event()


def record(line: str) -> None:
    """Appends a line with one write, so that concurrent lines stay whole."""
    file = os.open(EXECUTIONS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.close(file)


def is_first(key: str) -> bool:
    """Returns whether no process has called this function with the key before."""
    try:
        os.close(os.open(f"{EXECUTIONS}.{key}", os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


async def execute(key: str, number: int) -> int:
    # Before the line, because the process is killed as soon as the line is there.
    is_killed = number == 5 and is_first(key)
    record(f"{key} {number} {os.getpid()} {time.time_ns() // 1_000_000}")
    if is_killed:
        await asyncio.sleep(3600)
    return number


@app.tool(task="always")
async def ten(ctx: Durable, key: str) -> str:
    """Ten steps. The first execution of the fifth lasts until its process is killed."""
    values = [await ctx.step(("step", number), execute, key, number) for number in range(1, 11)]
    return f"{key} {sum(values)}"


async def meet(key: str, size: int) -> None:
    """Waits until all calls are in this step of this process."""
    HERE[key] = 1
    if len(HERE) >= size:
        COMPLETE.set()
    await COMPLETE.wait()


@app.tool(task="always")
async def crowd(ctx: Durable, key: str, size: int) -> str:
    """Three steps. The second ends when `size` calls are in it."""
    await ctx.step("first", record, f"{key} first")
    await ctx.step("meet", meet, key, size)
    await ctx.step("last", record, f"{key} last")
    return key


@app.tool(task="always")
async def steps(ctx: Durable, count: int) -> dict[str, Any]:
    """Steps without an effect, and their times."""
    nanos = []
    for number in range(count):
        started = time.perf_counter_ns()
        await ctx.step(("n", number), asyncio.sleep, 0, number)
        nanos.append(time.perf_counter_ns() - started)
    return {"nanos": nanos}


async def run(ctx: Durable, operations: list[Any], name: str) -> list[Any]:
    results: list[Any] = []
    for operation in operations:
        kind, key, value = operation["kind"], operation["key"], operation["value"]
        path = f"{name}/{key}"
        if kind == "step":

            async def body() -> int:
                record(path)
                await asyncio.sleep(value / 10_000)
                return value

            results.append(await ctx.step(key, body))
        elif kind == "sleep":
            results.append(await ctx.sleep(key, seconds=value / 1_000))
        elif kind == "ask":
            results.append(await ctx.elicit(key, "Continue?", bool))
        elif kind == "emit":
            results.append(await ctx.emit(path))
        else:
            branches = enumerate(operation["branches"])
            runs = (run(ctx.scope((key, number)), branch, f"{path}/{number}") for number, branch in branches)
            results.append(list(await asyncio.gather(*runs)))
    return results


@app.tool(task="always")
async def play(ctx: Durable, key: str, kill: dict[str, Any], operations: list[Any]) -> list[Any]:
    """Runs a random program. `kill` is for the process that kills this one."""
    return await run(ctx, operations, key)


app.run()
