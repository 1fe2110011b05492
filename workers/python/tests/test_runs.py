"""Errors, drops, threads and limits of runs, over real pipes."""

import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

from support import Conversation


class Errors(unittest.TestCase):
    def last(self, program, dev=False, **arguments):
        with Conversation(program, dev) as talk:
            talk.call("tool", **arguments)
            return talk.last()

    def test_tool_error_has_only_its_text(self):
        last = self.last("""
        @app.tool
        async def tool():
            raise ToolError("nothing found")
        """, dev=True)
        self.assertEqual(last, {"call": 1, "error": "nothing found", "kind": "ToolError"})

    def test_other_error_has_its_kind_and_in_development_its_place(self):
        program = """
        def push():
            os.listdir("/does/not/exist")
        @app.tool
        async def tool():
            push()
        """
        text = "[Errno 2] No such file or directory: '/does/not/exist'"
        self.assertEqual(self.last(program), {"call": 1, "error": text, "kind": "FileNotFoundError"})
        last = self.last(program, dev=True)
        self.assertRegex(last["error"], r" \(tools\.py:\d+ in push\)$")

    def test_error_has_a_traceback_with_a_limit(self):
        with Conversation("""
        @app.tool
        async def tool():
            raise ValueError("x" * 100_000)
        """) as talk:
            talk.call("tool")
            line = talk.receive()
        self.assertEqual((len(line["error"]), len(line["traceback"])), (16384, 16384))

    def test_exit_of_a_function_ends_only_its_call(self):
        with Conversation("""
        @app.tool
        async def leave():
            sys.exit("bye")
        @app.tool
        def leave_thread():
            sys.exit("bye")
        @app.tool
        async def tool():
            return 1
        """) as talk:
            talk.call("leave", 1)
            self.assertEqual(talk.last(), {"call": 1, "error": "bye", "kind": "SystemExit"})
            talk.call("leave_thread", 2)
            self.assertEqual(talk.last()["kind"], "SystemExit")
            talk.call("tool", 3)
            self.assertEqual(talk.last(), {"call": 3, "return": 1})

    def test_rejection_is_an_error_of_its_class(self):
        with Conversation("""
        @app.tool
        async def tool(ctx: Durable, catch: bool):
            try:
                await ctx.elicit("go", "Go?", bool)
            except TimedOut as error:
                if catch:
                    return [error.key, error.kind, str(error)]
                raise
        """) as talk:
            rejected = {"rejected": "go", "kind": "timed_out", "message": "too late"}
            talk.call("tool", 1, catch=True)
            talk.receive()
            talk.send(call=1, **rejected)
            self.assertEqual(talk.last()["return"], ["go", "timed_out", "too late"])
            talk.call("tool", 2, catch=False)
            talk.receive()
            talk.send(call=2, **rejected)
            self.assertEqual(talk.last(), {"call": 2, "error": "too late", "kind": "ToolError", "rejected": "go"})
            talk.call("tool", 3, catch=True)
            talk.receive()
            talk.send(call=3, rejected="go", kind="from_the_future", message="unknown")
            self.assertEqual(talk.last()["error"], "unknown")

    def test_response_without_acceptance_is_an_error_of_its_class(self):
        with Conversation("""
        @app.tool
        async def tool(ctx: Durable):
            try:
                await ctx.elicit("go", "Go?", bool)
            except (Declined, Cancelled) as error:
                return [type(error).__name__, str(error)]
        """) as talk:
            for call, action, name, text in ((1, "decline", "Declined", "declined"), (2, "cancel", "Cancelled", "cancelled")):
                talk.call("tool", call)
                talk.receive()
                talk.send(call=call, response="go", action=action)
                self.assertEqual(talk.last()["return"], [name, f"the user {text} the input request `go`"])

    def test_argument_of_another_type_is_an_error_that_names_it(self):
        last = self.last("""
        @app.tool
        async def tool(days: list[int]):
            return days
        """, days=[1, "a"])
        self.assertEqual((last["error"], last["kind"]), ('`days[1]` must be `int`, not "a"', "Mismatch"))

    def test_result_of_blocks_has_only_its_members(self):
        last = self.last("""
        @app.tool
        async def tool():
            return Result([{"type": "text", "text": "a"}])
        """)
        self.assertEqual(last, {"call": 1, "result": {"content": [{"type": "text", "text": "a"}]}})

    def test_result_without_json_form_is_an_error(self):
        too_large = "above the limit of 4186112; use emit"
        for value, text in (("object()", "a value of the type `object` is not JSON"), ("'x' * (5 << 20)", too_large), ("'猫' * (2 << 20)", too_large)):
            last = self.last(f"""
            @app.tool
            async def tool():
                return {value}
            """)
            self.assertIn(text, last["error"])


class Steps(unittest.TestCase):
    def lines(self, program, count, **arguments):
        with Conversation(program) as talk:
            talk.call("tool", **arguments)
            return talk.exchange(count)

    def test_first_run_gets_the_value_as_it_was_recorded(self):
        *_, last = self.lines("""
        @dataclass
        class Image:
            tags: set[int]
        def typed() -> Image:
            return Image({1})
        @app.tool
        async def tool(ctx: Durable):
            plain = await ctx.step("plain", lambda: ("a", {1: None}))
            image = await ctx.step("typed", typed)
            return [plain, str(image), ctx.get("typed")]
        """, 5)
        self.assertEqual(last["return"], [["a", {"1": None}], "Image(tags={1})", {"tags": [1]}])

    def test_result_of_another_type_than_its_annotation_fails_the_step(self):
        lines = self.lines("""
        def build() -> str:
            return 3
        @app.tool
        async def tool(ctx: Durable):
            await ctx.step("build", build)
        """, 3)
        text = "step `build` returned another type than its annotation: `build` must be `str`, not 3"
        self.assertEqual(lines[1], {"call": 1, "failed": "build", "error": text, "kind": "TypeError"})

    def test_value_above_the_limit_fails_the_step_and_frees_its_key(self):
        lines = self.lines("""
        @app.tool
        async def tool(ctx: Durable):
            try:
                await ctx.step("build", lambda: "x" * (4 << 20))
            except TooLarge:
                return await ctx.step("build", lambda: "small")
        """, 5)
        self.assertEqual(lines[1]["kind"], "TooLarge")
        self.assertEqual(lines[-1]["return"], "small")

    def test_key_is_used_once_in_a_run(self):
        lines = self.lines("""
        @app.tool
        async def tool(ctx: Durable):
            await ctx.step("a", lambda: 1)
            await ctx.scope("a").sleep("b", seconds=1)
        """, 2)
        self.assertEqual([list(line)[1] for line in lines], ["step", "done"])
        program = """
        @app.tool
        async def tool(ctx: Durable):
            await ctx.step(("a", "b"), lambda: 1)
            await ctx.scope("a").sleep("b", seconds=1)
        """
        text = 'the key `a/b` is used twice in one run; add a part, such as `("push", region)`, or use a scope'
        self.assertEqual(self.lines(program, 3)[-1], {"call": 1, "error": text, "kind": "ToolError"})

    def test_unstable_part_of_a_key_is_an_error(self):
        for part in ("object()", "{1}", "None", "[1]"):
            last = self.lines(f"""
            @app.tool
            async def tool(ctx: Durable):
                await ctx.step(("a", {part}), lambda: 1)
            """, 1)[-1]
            self.assertIn("cannot be a part of a key", last["error"])

    def test_operation_inside_of_a_step_is_an_error(self):
        async_program = """
        @app.tool
        async def tool(ctx: Durable):
            async def body():
                ctx.set_status_message("fine")
                await asyncio.gather(ctx.step("inner", lambda: 1))
            await ctx.step("outer", body)
        """
        thread_program = """
        @app.tool
        def tool(ctx: blocking.Durable):
            def body():
                ctx.set_status_message("fine")
                ctx.sleep("inner", seconds=1)
            ctx.step("outer", body)
        """
        for program in (async_program, thread_program):
            lines = self.lines(program, 4)
            self.assertEqual(lines[1]["status_message"], "fine")
            self.assertEqual(lines[2]["kind"], "InsideStep")
            self.assertIn("`inner` is used inside the step `outer`", lines[3]["error"])

    def test_function_of_a_step_in_a_thread_does_not_block_other_calls(self):
        with Conversation("""
        release = threading.Event()
        @app.tool
        async def tool(ctx: Durable):
            return await ctx.step("wait", release.wait)
        @app.tool
        async def go():
            release.set()
        """) as talk:
            talk.call("tool", 1)
            self.assertEqual(talk.receive()["step"], "wait")
            talk.call("go", 2)
            lines = talk.exchange(2)
            self.assertEqual({line["call"] for line in lines}, {1, 2})
            self.assertEqual(talk.last()["return"], True)

    def test_async_function_in_a_def_tool_is_an_error(self):
        lines = self.lines("""
        async def body():
            pass
        @app.tool
        def tool(ctx: blocking.Durable):
            ctx.step("a", body)
        """, 3)
        self.assertIn("the body of step `a` is async", lines[-1]["error"])

    def test_result_instead_of_a_function_is_an_error(self):
        last = self.lines("""
        @app.tool
        async def tool(ctx: Durable):
            await ctx.step("push", asyncio.sleep(0))
        """, 1)[-1]
        self.assertIn("step `push` needs a function and its arguments", last["error"])

    def test_lambda_that_returns_a_coroutine_is_awaited(self):
        lines = self.lines("""
        async def push(image):
            return image
        @app.tool
        async def tool(ctx: Durable):
            return await ctx.step("push", lambda: push("shop"))
        """, 3)
        self.assertEqual(lines[-1]["return"], "shop")

    def test_last_error_counts_after_all_attempts(self):
        lines = self.lines("""
        tries = 0
        def fail():
            global tries
            tries += 1
            raise OSError(f"try {tries}")
        @app.tool
        async def tool(ctx: Durable):
            await ctx.step("a", fail, retry=2)
        """, 3)
        self.assertEqual([line.get("error") for line in lines], [None, "try 2", "try 2"])

    def test_permanent_error_is_not_retried_and_hides_its_class(self):
        lines = self.lines("""
        class NoRepo(Permanent):
            pass
        def fail():
            raise NoRepo("no such repo")
        @app.tool
        async def tool(ctx: Durable):
            try:
                await ctx.step("a", fail, retry=5)
            except Permanent as error:
                return [type(error).__name__, str(error)]
        """, 3)
        self.assertEqual(lines[-1]["return"], ["Permanent", "no such repo"])

    def test_recorded_entry_as_response_to_once_is_used(self):
        with Conversation("""
        @app.tool
        async def tool(ctx: Durable):
            return await ctx.step("a", lambda: 1, once=True)
        """) as talk:
            for call, entry, expected in ((1, {"value": 5}, {"return": 5}), (2, {"failed": "no"}, {"error": "no", "kind": "ToolError"})):
                talk.call("tool", call)
                talk.receive()
                talk.send(call=call, recorded="a", **entry)
                self.assertEqual(talk.receive(), {"call": call, "replayed": ["a"]})
                self.assertEqual(talk.last(), {"call": call, **expected})

    def test_parallel_steps_of_threads_wait_for_their_own_results(self):
        with Conversation("""
        from concurrent.futures import ThreadPoolExecutor
        both = threading.Barrier(2)
        @app.tool
        def tool(ctx: blocking.Durable):
            with ThreadPoolExecutor() as pool:
                return list(pool.map(lambda n: ctx.step(("n", n), lambda: (both.wait(), n)[1]), range(2)))
        """) as talk:
            talk.call("tool")
            lines = [talk.receive() for _ in range(4)]
            done = [line["done"] for line in lines if "done" in line]
            self.assertEqual(sorted(done), ["n/0", "n/1"])
            for key in reversed(done):
                talk.send(call=1, recorded=key)
            self.assertEqual(talk.last()["return"], [0, 1])


class Drops(unittest.TestCase):
    def test_dropped_async_run_ends_with_its_finally_block(self):
        with Conversation("""
        @app.tool
        async def tool(ctx: Durable):
            try:
                await ctx.sleep("a", seconds=9)
            except Exception:
                print("caught")
            finally:
                print("finally")
                try:
                    await ctx.step("undo", lambda: 1)
                finally:
                    print("again")
        """) as talk:
            talk.call("tool")
            talk.receive()
            talk.send(call=1, drop="parked")
            self.assertEqual(talk.receive(), {"call": 1, "dropped": True})
            talk.send(ping=1)
            self.assertEqual(talk.receive(), {"pong": 1})
        self.assertEqual(talk.errors().split(), ["finally", "again"])

    def test_dropped_thread_ends_at_the_next_use_of_its_context(self):
        with Conversation("""
        started, release = threading.Event(), threading.Event()
        def body():
            started.set()
            release.wait()
        @app.tool
        def tool(ctx: blocking.Durable):
            try:
                ctx.step("a", body)
            except Exception:
                print("caught")
            except Dropped:
                print("dropped")
                ctx.info("never sent")
        @app.tool
        def go():
            started.wait()
            release.set()
        """) as talk:
            talk.call("tool", 1)
            talk.receive()
            talk.send(call=1, drop="lease_lost")
            talk.send(ping=1)
            self.assertEqual(talk.receive(), {"pong": 1})
            talk.call("go", 2)
            self.assertEqual(sorted([json.dumps(talk.receive()), json.dumps(talk.receive())]),
                             ['{"call": 1, "dropped": true}', '{"call": 2, "return": null}'])
        self.assertEqual(talk.errors().split(), ["dropped"])

    def test_waiting_thread_is_dropped_at_once(self):
        with Conversation("""
        @app.tool
        def tool(ctx: blocking.Durable):
            ctx.elicit("go", "Go?", bool)
        """) as talk:
            talk.call("tool")
            talk.receive()
            talk.send(call=1, drop="parked")
            self.assertEqual(talk.receive(), {"call": 1, "dropped": True})

    def test_drop_waits_for_a_step_in_a_thread(self):
        with Conversation("""
        release = threading.Event()
        @app.tool
        async def tool(ctx: Durable):
            await ctx.step("a", release.wait)
        @app.tool
        async def go():
            release.set()
        """) as talk:
            talk.call("tool", 1)
            talk.receive()
            talk.send(call=1, drop="moved")
            talk.call("go", 2)
            self.assertEqual(talk.receive(), {"call": 2, "return": None})
            self.assertEqual(talk.receive(), {"call": 1, "dropped": True})

    def test_drop_before_the_start_of_a_run_has_a_response(self):
        with Conversation("""
        @app.tool
        async def tool(ctx: Durable):
            return 1
        """) as talk:
            call = {"call": 1, "tool": "tool", "arguments": {}, "journal": {}}
            lines = [json.dumps(line) for line in (call, {"call": 1, "drop": "moved"})]
            talk.process.process.stdin.write(("\n".join(lines) + "\n").encode())
            talk.process.process.stdin.flush()
            self.assertEqual(talk.receive(), {"call": 1, "dropped": True})

    def test_context_of_an_ended_run_raises(self):
        with Conversation("""
        late = asyncio.Event()
        @app.tool
        async def tool(ctx: Durable):
            async def later():
                await late.wait()
                try:
                    await ctx.step("a", lambda: 1)
                except RunEnded as error:
                    print(error)
                    sys.stdout.flush()
                asyncio.get_running_loop().call_soon(app.worker.write, {"pong": 9})
            app.task = asyncio.create_task(later())
            return 1
        @app.tool
        async def go():
            late.set()
        """) as talk:
            talk.call("tool", 1)
            talk.receive()
            talk.call("go", 2)
            talk.receive()
            self.assertEqual(talk.receive(), {"pong": 9})
        self.assertEqual(talk.errors().strip(), "`a` is used after its run has ended")

    def test_operations_after_a_cancellation_fail_without_a_line(self):
        with Conversation("""
        @app.tool
        async def tool(ctx: Durable):
            await ctx.step("a", lambda: 1)
            assert ctx.cancelled
            await ctx.step("b", lambda: 2)
        """) as talk:
            talk.call("tool")
            self.assertEqual([talk.receive().get("step"), talk.receive().get("done")], ["a", "a"])
            talk.send(call=1, cancel="requested by the client")
            talk.send(call=1, recorded="a")
            self.assertEqual(talk.last(), {"call": 1, "error": "the task was cancelled before `b` completed", "kind": "ToolError"})

    def test_time_is_a_whole_number_of_milliseconds_and_never_negative(self):
        with Conversation("""
        @app.tool
        async def tool(ctx: Durable, seconds: float):
            await ctx.sleep("a", minutes=seconds and 1, seconds=seconds)
        """) as talk:
            talk.call("tool", 1, seconds=0.0016)
            self.assertEqual(talk.receive()["ms"], 60_002)
            talk.call("tool", 2, seconds=-100)
            self.assertEqual(talk.receive()["ms"], 0)

    def test_input_request_that_is_no_longer_needed_is_withdrawn(self):
        with Conversation("""
        @app.tool
        async def tool(ctx: Durable):
            try:
                await asyncio.wait_for(ctx.elicit("go", "Go?", bool), 0.01)
            except asyncio.TimeoutError:
                return "gone"
        """) as talk:
            talk.call("tool")
            lines = talk.exchange(3)
            self.assertEqual(lines[1:], [{"call": 1, "withdraw": "go"}, {"call": 1, "return": "gone"}])


class Events(unittest.TestCase):
    def test_value_of_an_event_can_be_read_again(self):
        program = """
        @app.tool
        async def tool(ctx: Durable):
            event = await ctx.external_event("film", str)
            return [await event, await event]
        @app.tool
        def tool_in_thread(ctx: blocking.Durable):
            event = ctx.external_event("film", str)
            return [event.wait(), event.wait()]
        """
        with Conversation(program) as talk:
            for call, tool in ((1, "tool"), (2, "tool_in_thread")):
                talk.call(tool, call)
                talk.receive()
                talk.send(call=call, completion_token="film", value="token")
                talk.send(call=call, completed="film", value="film.mp4")
                self.assertEqual(talk.last()["return"], ["film.mp4", "film.mp4"])


    def test_value_that_arrives_before_a_thread_waits_for_its_token_is_kept(self):
        with Conversation("""
        read = threading.Event()
        @app.tool
        def tool(ctx: blocking.Durable):
            reply = ctx._run.reply
            async def late(key, withdraw=False):
                read.wait()  # both lines of the server are here before the thread waits for the first
                return await reply(key, withdraw)
            ctx._run.reply = late
            event = ctx.external_event("film", str)
            return [event.token, event.wait()]
        @app.tool
        async def go():
            read.set()
        """) as talk:
            talk.call("tool", 1)
            talk.receive()
            talk.send(call=1, completion_token="film", value="token")
            talk.send(call=1, completed="film", value="film.mp4")
            talk.call("go", 2)
            lines = {line["call"]: line.get("return") for line in (talk.receive(), talk.receive())}
            self.assertEqual(lines, {1: ["token", "film.mp4"], 2: None})


class Blocks(unittest.TestCase):
    def test_rejected_block_raises_in_the_next_emit(self):
        with Conversation("""
        @app.tool
        async def tool(ctx: Context):
            for n in range(70):
                try:
                    await ctx.emit(str(n))
                except DurableError as error:
                    return [n, error.kind, error.key]
        """) as talk:
            talk.call("tool")
            for _ in range(64):
                talk.receive()
            talk.send(call=1, rejected="", segment=2, kind="too_large", message="too large")
            self.assertEqual(talk.last()["return"], [64, "too_large", ""])

    def test_thread_waits_for_the_server_after_64_blocks(self):
        with Conversation("""
        @app.tool
        def tool(ctx: blocking.Context):
            for n in range(200):
                ctx.emit({"type": "text", "text": str(n)})
        """) as talk:
            talk.call("tool")
            stored = 0
            for number in range(200):
                self.assertEqual(talk.receive()["emit"]["text"], str(number))
                if number - stored == 63:
                    stored = number + 1
                    talk.send(call=1, stored_segments=stored)
            self.assertEqual(talk.last(), {"call": 1, "return": None})

    def test_branches_share_the_wait_and_one_may_be_cancelled(self):
        with Conversation("""
        @app.tool
        async def tool(ctx: Context):
            await asyncio.gather(*(ctx.emit("a") for _ in range(64)))
            first, second = asyncio.create_task(ctx.emit("b")), asyncio.create_task(ctx.emit("c"))
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            ctx.set_status_message("waiting")
            await second
        """) as talk:
            talk.call("tool")
            lines = talk.exchange(65)
            self.assertEqual(lines[-1]["status_message"], "waiting")
            talk.send(call=1, stored_segments=1)
            self.assertEqual(talk.receive()["emit"]["text"], "c")


class Processes(unittest.TestCase):
    def test_lines_that_arrive_with_welcome_are_handled(self):
        talk = Conversation("""
        @app.tool
        async def tool():
            return 1
        """)
        call = {"call": 1, "tool": "tool", "arguments": {}, "journal": {}}
        lines = [{"welcome": {"protocol": 1, "nonce": talk.process.nonce}}, {"ping": 1}, call]
        talk.process.process.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        talk.process.process.stdin.flush()
        self.assertIn("hello", talk.receive())
        self.assertEqual([talk.receive(), talk.receive()], [{"pong": 1}, {"call": 1, "return": 1}])
        talk.__exit__()

    def test_thousand_parallel_calls_complete(self):
        with Conversation("""
        @app.tool
        async def tool(ctx: Durable, n: int):
            return await ctx.step("n", asyncio.sleep, 0, n)
        """) as talk:
            for call in range(1, 1001):
                talk.call("tool", call, n=call)
            found = {}
            while len(found) < 1000:
                line = talk.exchange()[0]
                if "return" in line:
                    found[line["call"]] = line["return"]
            self.assertEqual(found, {call: call for call in range(1, 1001)})

    def test_end_of_input_ends_a_process_with_busy_threads(self):
        with Conversation("""
        @app.tool
        def tool(ctx: blocking.Durable):
            ctx.step("a", time.sleep, 600)
        @app.tool
        async def spin(ctx: Durable):
            ctx.set_status_message("spinning")
            time.sleep(600)
        """) as talk:
            talk.call("tool", 1)
            talk.call("spin", 2)
            talk.exchange(2)
            talk.process.process.stdin.close()
            self.assertEqual(talk.process.exit_code(), 0)

    def test_lifespan_opens_before_hello_and_closes_after_drain(self):
        with Conversation("""
        @app.lifespan
        async def shared():
            app.opened = ["async"]
            yield
            print("closed async")
        @app.lifespan
        def more():
            app.opened.append("def")
            yield
            print("closed def")
        @app.tool
        async def tool():
            return app.opened
        """) as talk:
            talk.call("tool")
            self.assertEqual(talk.last()["return"], ["async", "def"])
            talk.send(drain=True)
            self.assertEqual(talk.process.exit_code(), 0)
        self.assertEqual(talk.errors().splitlines(), ["closed def", "closed async"])

    def test_failed_declaration_and_failed_lifespan_exit_with_code_2(self):
        declaration = """
        @app.tool
        def tool(data: bytes): ...
        """
        lifespan = """
        @app.lifespan
        async def shared():
            raise OSError("no database")
            yield
        """
        for program, text, code in ((declaration, "the parameter `data`", 1), (lifespan, "no database", 2)):
            talk = Conversation(program)
            talk.process.send({"welcome": {"protocol": 1, "nonce": "$NONCE"}}) if code == 2 else None
            self.assertEqual(talk.process.exit_code(), code)
            talk.__exit__()
            self.assertIn(text, talk.errors())

    def test_tool_that_is_declared_later_is_sent(self):
        with Conversation("""
        @app.tool
        async def tool():
            @app.tool
            async def second():
                return 2
        """) as talk:
            self.assertEqual([tool["name"] for tool in talk.hello["tools"]], ["tool"])
            talk.call("tool", 1)
            self.assertEqual([tool["name"] for tool in talk.receive()["tools"]], ["tool", "second"])
            talk.receive()
            talk.call("second", 2)
            self.assertEqual(talk.last()["return"], 2)

    def test_output_of_functions_and_child_processes_goes_to_standard_error(self):
        with Conversation("""
        import subprocess
        @app.tool
        def tool():
            print("printed")
            os.write(1, b"written\\n")
            subprocess.run(["sh", "-c", "echo child; cat"], check=True)
            return sys.stdin.read()
        """) as talk:
            talk.call("tool")
            self.assertEqual(talk.last(), {"call": 1, "return": ""})
            talk.send(drain=True)
            self.assertEqual(talk.process.exit_code(), 0)
        self.assertEqual(sorted(talk.errors().split()), ["child", "printed", "written"])

    def test_printed_line_is_sent_at_once(self):
        with Conversation("""
        @app.tool
        async def tool(ctx: Durable):
            print("printed")
            await ctx.sleep("a", seconds=1)
        """) as talk:
            talk.call("tool")
            talk.receive()
            talk.process.kill()
        self.assertEqual(talk.errors(), "printed\n")

    def test_program_that_is_started_by_hand_executes_outlive_serve(self):
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder, "outlive")
            fake.write_text('#!/bin/sh\necho "$@"\n')
            fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
            file = pathlib.Path(folder, "tools.py")
            file.write_text("from outlive import Outlive\nOutlive('a').run()\n")
            env = {name: value for name, value in os.environ.items() if name != "OUTLIVE_WORKER"}
            path = f"{folder}{os.pathsep}{env['PATH']}"
            command = [sys.executable, str(file), "--stdio"]
            done = subprocess.run(command, env={**env, "PATH": path}, capture_output=True, text=True)
            self.assertEqual(done.stdout, f"serve {file} --stdio\n")
            done = subprocess.run(command, env={**env, "PATH": "/does/not/exist"}, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("the program `outlive` is not on the path", done.stderr)

    def test_run_in_an_imported_module_has_no_effect(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "tools.py").write_text("from outlive import Outlive\napp = Outlive('a')\napp.run()\n")
            command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {folder!r}); import tools; print(tools.app.name)"]
            done = subprocess.run(command, env={**os.environ, "OUTLIVE_WORKER": "1"}, capture_output=True, text=True)
            self.assertEqual((done.stdout, done.returncode), ("a\n", 0))


if __name__ == "__main__":
    unittest.main()
