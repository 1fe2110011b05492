"""Random programs: each crash has the result of an undisturbed run."""

import asyncio
import random
import unittest
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import support  # noqa: F401
import outlive
from outlive import Durable, Outlive, blocking

app = Outlive("random")
PROGRAMS = 60


def program(dice: random.Random, depth: int = 0) -> list[Any]:
    """Returns a list of operations. `all` has branches, each of which is a program with its own scope."""
    operations = []
    for number in range(dice.randint(1, 3)):
        kind = dice.choice(["step", "step", "sleep", "ask", "emit", "all"] if depth < 2 else ["step", "sleep", "emit"])
        branches = [program(dice, depth + 1) for _ in range(dice.randint(1, 3))] if kind == "all" else []
        operations.append([kind, f"{kind}{number}", dice.randint(0, 99), branches])
    return operations


def expected(operations: list[Any], requests: list[tuple[Any, ...]], prefix: tuple[Any, ...] = ()) -> list[Any]:
    """Returns the result of a program, and collects the keys of its input requests."""
    results: list[Any] = []
    for kind, key, value, branches in operations:
        if kind == "all":
            results.append([expected(branch, requests, (*prefix, key, n)) for n, branch in enumerate(branches)])
        elif kind == "ask":
            requests.append((*prefix, key))
            results.append(True)
        else:
            results.append(value if kind == "step" else None)
    return results


async def run(ctx: Durable, operations: list[Any]) -> list[Any]:
    results: list[Any] = []
    for kind, key, value, branches in operations:
        if kind == "step":
            results.append(await ctx.step(key, asyncio.sleep, 0, value))
        elif kind == "sleep":
            results.append(await ctx.sleep(key, seconds=value))
        elif kind == "ask":
            results.append(await ctx.elicit(key, "Go on?", bool))
        elif kind == "emit":
            results.append(await ctx.emit(f"{key} {value}"))
        else:
            results.append(list(await asyncio.gather(*(run(ctx.scope((key, n)), branch) for n, branch in enumerate(branches)))))
    return results


def run_in_thread(ctx: blocking.Durable, operations: list[Any]) -> list[Any]:
    results: list[Any] = []
    for kind, key, value, branches in operations:
        if kind == "step":
            results.append(ctx.step(key, lambda: value))
        elif kind == "sleep":
            results.append(ctx.sleep(key, seconds=value))
        elif kind == "ask":
            results.append(ctx.elicit(key, "Go on?", bool))
        elif kind == "emit":
            results.append(ctx.emit(f"{key} {value}"))
        else:
            with ThreadPoolExecutor() as pool:
                scopes = [ctx.scope((key, n)) for n in range(len(branches))]
                results.append(list(pool.map(run_in_thread, scopes, branches)))
    return results


@app.tool
async def play(ctx: Durable, operations: list[Any]) -> list[Any]:
    return await run(ctx, operations)


@app.tool
def play_in_thread(ctx: blocking.Durable, operations: list[Any]) -> list[Any]:
    return run_in_thread(ctx, operations)


class Random(unittest.TestCase):
    def check(self, tool: Any, seed: int, each: bool) -> None:
        operations = program(random.Random(seed))
        requests: list[tuple[Any, ...]] = []
        result = expected(operations, requests)
        call = outlive.test(tool, operations=operations).strict()
        for key in requests:
            call.accept(key, yes=True)
        outcome = call.crash_after_each() if each else call.run()
        self.assertEqual(outcome.structured, result)
        self.assertEqual(sorted(outcome.input_requests), sorted("/".join(map(str, key)) for key in requests))

    def test_async_programs_survive_each_crash(self):
        for seed in range(PROGRAMS):
            with self.subTest(seed):
                self.check(play, seed, each=True)

    def test_programs_in_threads_have_their_result(self):
        for seed in range(PROGRAMS):
            with self.subTest(seed):
                self.check(play_in_thread, seed, each=False)


if __name__ == "__main__":
    unittest.main()
