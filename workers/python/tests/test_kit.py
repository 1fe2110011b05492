"""The test kit."""

import asyncio
import unittest
from dataclasses import dataclass
from typing import Literal

import support  # noqa: F401
import outlive
from outlive import Ambiguous, Cleanup, Context, Durable, Outlive, TaskCancelled, TestFailure, ToolError, blocking

app = Outlive("test")


@dataclass
class Approval:
    yes: bool


async def build(repo: str) -> str:
    return f"{repo}:1"


def push(image: str, region: str) -> None:
    pass


@app.tool(task="auto")
async def deploy(ctx: Durable, repo: str, regions: list[str]) -> str:
    image = await ctx.step("build", build, repo)
    if not (await ctx.elicit("approve", f"Deploy {image}?", Approval)).yes:
        return "nothing happened"
    for n, region in enumerate(regions):
        ctx.set_status_message(f"rolling out to {region}")
        await ctx.step(("push", region), push, image, region, retry=3)
        await ctx.emit(f"{region} done")
        await ctx.sleep(("soak", region), minutes=10)
    return f"{image} is out"


@app.tool
def deploy_in_thread(ctx: blocking.Durable, repo: str, regions: list[str]) -> str:
    image = ctx.step("build", lambda: f"{repo}:1")
    if not ctx.elicit("approve", f"Deploy {image}?", Approval).yes:
        return "nothing happened"
    for region in regions:
        ctx.set_status_message(f"rolling out to {region}")
        ctx.step(("push", region), push, image, region, retry=3)
        ctx.emit(f"{region} done")
        ctx.sleep(("soak", region), minutes=10)
    return f"{image} is out"


def play(tool, **arguments):
    return outlive.test(tool, **arguments)


class Kit(unittest.TestCase):
    def test_crash_after_each_entry_has_the_same_result(self):
        for tool in (deploy, deploy_in_thread):
            with self.subTest(tool.name):
                outcome = play(tool, repo="shop", regions=["eu", "us"]).accept("approve", yes=True).crash_after_each()
                self.assertEqual(outcome.text, "shop:1 is out")
                self.assertEqual(outcome.steps, ["build", "push/eu", "push/us"])
                self.assertEqual(outcome.executed, {"build": 1, "push/eu": 1, "push/us": 1})
                self.assertEqual(outcome.input_requests, ["approve"])
                self.assertEqual([block["text"] for block in outcome.segments], ["eu done", "us done"])
                self.assertIn("rolling out to us", outcome.status_messages)

    def test_declined_request_is_an_error(self):
        outcome = play(deploy, repo="shop", regions=[]).decline("approve").run()
        self.assertEqual((outcome.is_error, outcome.text), (True, "the user declined the input request `approve`"))
        self.assertEqual(play(deploy, repo="shop", regions=[]).accept("approve", yes=False).run().text, "nothing happened")

    def test_missing_response_fails_the_test(self):
        with self.assertRaisesRegex(TestFailure, "`approve` has no scripted response"):
            play(deploy, repo="shop", regions=[]).run()

    def test_unused_response_fails_a_strict_test(self):
        call = play(deploy, repo="shop", regions=[]).accept("approve", yes=True).accept("other", yes=True)
        self.assertEqual(call.run().text, "shop:1 is out")
        with self.assertRaisesRegex(TestFailure, r"\['other'\] are not used"):
            call.strict().run()

    def test_crash_after_unknown_key_fails_the_test(self):
        with self.assertRaisesRegex(TestFailure, "`bild` is never recorded"):
            play(deploy, repo="shop", regions=[]).accept("approve", yes=True).crash_after("bild")

    def test_results_that_differ_between_runs_fail_the_test(self):
        runs = []

        @Outlive("test").tool
        async def tool(ctx: Durable):
            runs.append(1)
            await ctx.step("a", lambda: 1)
            return len(runs)

        with self.assertRaisesRegex(TestFailure, "put every effect and every decision into a step"):
            play(tool).run()

    def test_replay_that_requests_less_fails_the_test(self):
        runs = []

        @Outlive("test").tool
        async def tool(ctx: Durable):
            runs.append(1)
            if len(runs) == 1:
                await ctx.step("a", lambda: 1)
            return 1

        with self.assertRaisesRegex(TestFailure, r"a replay does not request \['a'\]"):
            play(tool).run()

    def test_key_that_is_used_twice_fails_the_test_although_the_handler_catches_the_error(self):
        @Outlive("test").tool
        async def tool(ctx: Durable):
            await ctx.step("a", lambda: 1)
            try:
                await ctx.step("a", lambda: 2)
            except outlive.DuplicateKey:
                return 1

        with self.assertRaisesRegex(TestFailure, "the key `a` is used twice"):
            play(tool).run()

    def test_replayed_block_that_differs_fails_the_test(self):
        runs = []

        @Outlive("test").tool
        async def tool(ctx: Durable):
            runs.append(1)
            await ctx.emit(str(len(runs)))

        with self.assertRaisesRegex(TestFailure, "a replay emits"):
            play(tool).run()

    def test_parallel_branches_with_timers_and_requests_survive_each_crash(self):
        @Outlive("test").tool
        async def tool(ctx: Durable):
            async def branch(n: int) -> int:
                inner = ctx.scope(("branch", n))
                await inner.sleep("wait", seconds=10 - n)
                await inner.emit(f"start {n}")
                if n == 1:
                    await inner.elicit("ok", "Go on?", bool)
                return await inner.step("work", asyncio.sleep, 0, n)

            return await asyncio.gather(*(branch(n) for n in range(3)))

        outcome = play(tool).accept(("branch", 1, "ok"), yes=True).crash_after_each()
        self.assertEqual(outcome.structured, [0, 1, 2])
        self.assertEqual(set(outcome.executed.values()), {1})
        self.assertEqual([block["text"] for block in outcome.segments], ["start 2", "start 1", "start 0"])

    def test_once_is_ambiguous_if_its_run_is_lost_in_the_step(self):
        @Outlive("test").tool
        async def tool(ctx: Durable):
            other = asyncio.ensure_future(ctx.step("other", lambda: 1))
            try:
                charged = await ctx.step("charge", asyncio.sleep, 0.2, "charged", once=True)
            except Ambiguous:
                charged = "unclear"
            await other
            return charged

        self.assertEqual(play(tool).run().text, "charged")
        with self.assertRaisesRegex(TestFailure, "after a crash behind `other` the result is 'unclear', not 'charged'"):
            play(tool).crash_after("other")

    def test_external_event_and_sampling_have_scripted_values(self):
        @Outlive("test").tool
        async def tool(ctx: Durable):
            event = await ctx.external_event("film", str, timeout=60)
            token = await ctx.step("submit", lambda: event.token)
            summary = await ctx.sample("summary", "Summarize.")
            return [token, await event, summary["content"]["text"]]

        call = play(tool).complete("film", "film.mp4").respond("summary", {"result": {"content": {"type": "text", "text": "short"}}})
        self.assertEqual(call.crash_after_each().structured, ["token of film", "film.mp4", "short"])

    def test_cancellation_ends_waits_and_runs_the_cleanup(self):
        tidied = []
        own = Outlive("test")

        @own.tool
        async def tool(ctx: Durable, fail: bool):
            await ctx.step("reserve", lambda: 7)
            try:
                await ctx.sleep("wait", days=1)
            except TaskCancelled:
                if fail:
                    raise
            return "kept"

        @tool.cleanup
        async def tidy(task: Cleanup, fail: bool):
            tidied.append((task.reason, task.get("reserve", int), task.get("other")))

        outcome = play(tool, fail=True).cancel_after("reserve")
        self.assertEqual((outcome.cancelled, outcome.cleanup, tidied), (True, "done", [("cancelled", 7, None)]))
        outcome = play(tool, fail=False).cancel_after("reserve")
        self.assertEqual((outcome.cancelled, outcome.cleanup, outcome.text), (False, None, "kept"))

    def test_lifespan_opens_and_closes_around_a_test(self):
        own, events = Outlive("test"), []

        @own.lifespan
        async def shared():
            events.append("open")
            yield
            events.append("close")

        @own.tool
        async def tool(ctx: Context):
            events.append(ctx.principal.name)
            raise ToolError("no")

        self.assertTrue(play(tool).run().is_error)
        self.assertEqual(events, ["open", "test", "close"])

    def test_test_runs_inside_of_a_running_event_loop(self):
        async def main():
            return play(deploy, repo="shop", regions=[]).accept("approve", yes=True).run().text

        self.assertEqual(asyncio.run(main()), "shop:1 is out")

    def test_choice_is_read_from_its_field(self):
        @Outlive("test").tool
        async def tool(ctx: Durable):
            return await ctx.elicit("size", "Which?", Literal["s", "l"], outcome=True)

        self.assertEqual(play(tool).accept("size", choice="s").run().structured, {"action": "accept", "content": "s"})
        self.assertEqual(play(tool).cancel("size").run().structured, {"action": "cancel", "content": None})


if __name__ == "__main__":
    unittest.main()
