"""A tool worker with the bare protocol, for the tests. Standard library only; each call has a thread.

It stands for a tool worker in any language: docs/workers-protocol.md describes its messages.
"""

import json
import os
import signal
import sys
import threading
import time

OUT = threading.Lock()
NONCE = ""
CALLS = {}
PIECES = {}
TOOLS = {}
CLEANUPS = {}
DRAINING = threading.Event()
LOG = os.environ.get("TEST_LOG")


def send(message):
    text = json.dumps({"nonce": NONCE, **message}, separators=(",", ":"))
    with OUT:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def raw(text):
    with OUT:
        sys.stdout.write(text)
        sys.stdout.flush()


def note(text):
    """Records an execution outside of the journal, as an external system would."""
    if LOG:
        with open(LOG, "a") as log:
            log.write(text + "\n")


class Dropped(BaseException):
    pass


class Rejected(Exception):
    def __init__(self, message):
        super().__init__(message["message"])
        self.kind = message["kind"]
        self.key = message["rejected"]


class Permanent(Exception):
    pass


class Ctx:
    """The context of one run."""

    def __init__(self, number, start):
        self.number, self.start = number, start
        self.journal = start["journal"]
        self.inbox = {}
        self.lock = threading.Condition()
        self.dropped = False
        self.cancelled = False
        self.emitted = self.stored = 0

    def receive(self, message):
        with self.lock:
            if "drop" in message:
                self.dropped = True
            elif "cancel" in message:
                self.cancelled = True
            elif "stored_segments" in message:
                self.stored = message["stored_segments"]
            else:
                names = ("recorded", "go", "rejected", "response", "woke", "completion_token", "completed")
                name = next((name for name in names if name in message), None)
                if name:
                    self.inbox.setdefault((name, message[name]), []).append(message)
            self.lock.notify_all()

    def send(self, message):
        with self.lock:
            if self.dropped:
                raise Dropped()
        send({"call": self.number, **message})

    def wait(self, key, *names):
        with self.lock:
            while True:
                for name in (*names, "rejected"):
                    found = self.inbox.get((name, key))
                    if found:
                        message = found.pop(0)
                        if name == "rejected":
                            raise Rejected(message)
                        return message
                if self.dropped:
                    raise Dropped()
                self.lock.wait()

    def step(self, key, body, once=False, secret=False):
        if key in self.journal:
            self.send({"replayed": [key]})
            entry = self.journal[key]
            if "f" in entry:
                raise Permanent(entry["f"]["message"])
            return entry["v"] if "v" in entry else entry["x"]
        self.send({"step": key, **({"once": True} if once else {})})
        if once:
            message = self.wait(key, "go", "recorded")
            if "recorded" in message:
                return message["value"]
        try:
            value = body()
        except Permanent as error:
            self.send({"failed": key, "error": str(error), "kind": "Permanent", "permanent": True})
            self.wait(key, "recorded")
            raise
        except Exception as error:
            self.send({"failed": key, "error": str(error), "kind": type(error).__name__})
            raise
        self.send({"done": key, "value": value, **({"secret": True} if secret else {})})
        self.wait(key, "recorded")
        return value

    def elicit(self, key, message, **more):
        self.send({"input": key, "message": message, **more})
        return self.wait(key, "response")

    def sleep(self, key, ms):
        self.send({"sleep": key, "ms": ms})
        self.wait(key, "woke")

    def event(self, key):
        self.send({"external_event": key, "timeout_ms": 600000})
        return self.wait(key, "completion_token")["value"]

    def emit(self, text, scope=None):
        with self.lock:
            while self.emitted - self.stored >= 64 and not self.dropped:
                self.lock.wait()
        self.emitted += 1
        self.send({"emit": {"type": "text", "text": text}, **({"in": scope} if scope else {})})


def tool(durable=True, **entry):
    def add(function):
        TOOLS[function.__name__] = (function, {"name": function.__name__, "durable": durable, **entry})
        return function
    return add


def text(name, kind="string"):
    return {"type": "object", "properties": {name: {"type": kind}}, "additionalProperties": False}


@tool(durable=False, task="never", inputSchema=text("name"))
def greet(ctx, name="you"):
    return f"hello {name}"


@tool(durable=False, task="never")
def whoami(ctx):
    return {"principal": ctx.start.get("principal"), "key": ctx.start["idempotency_key"],
            "attempt": ctx.start["attempt"], "pid": os.getpid()}


@tool(task="always", inputSchema=text("kill", "integer"))
def ten(ctx, kill=0):
    """Ten steps; the process is killed in one of them, once per task."""
    for number in range(1, 11):
        def body():
            note(f"step {number}")
            if number == kill and ctx.start["attempt"] == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return number
        ctx.step(f"step/{number}", body)
    return "ten"


@tool(task="always")
def slow(ctx):
    """Ten steps that take a while."""
    for number in range(1, 11):
        ctx.step(f"step/{number}", lambda: note(f"step {number}") or time.sleep(0.15))
    return "ten"


@tool(task="always")
def deploy(ctx):
    image = ctx.step("build", lambda: note("build") or "shop:1")
    answer = ctx.elicit("approve", f"Deploy {image}?", fields={"yes": {"type": "boolean"}}, required=["yes"])
    if answer["action"] != "accept" or not answer["content"]["yes"]:
        return "nothing happened"
    ctx.step("push", lambda: note("push"))
    return f"{image} is out"


@tool(task="never")
def ask(ctx):
    """As deploy, but never a task."""
    return deploy(ctx)


@tool(task="always")
def naps(ctx):
    for number in range(3):
        ctx.sleep(f"nap/{number}", 300)
    return "awake"


@tool(task="always")
def streams(ctx):
    def compile():
        for number in range(100):
            ctx.emit(f"compiling {number}", "compile")
    ctx.step("compile", compile)
    ctx.emit("packed", "order")
    if ctx.start["attempt"] == 1 and LOG:
        os.kill(os.getpid(), signal.SIGKILL)
    ctx.emit("shipped")
    return "done"


@tool(task="always")
def renders(ctx):
    token = ctx.event("film")
    note("token " + token)
    return "film: " + ctx.wait("film", "completed")["value"]


@tool(task="always")
def pays(ctx):
    def body():
        note("charge")
        if os.path.exists(LOG + ".kill"):
            os.remove(LOG + ".kill")
            os.kill(os.getpid(), signal.SIGKILL)
        return "receipt"
    try:
        return ctx.step("charge", body, once=True)
    except Rejected as error:
        return error.kind


@tool(task="always")
def dies(ctx):
    note("dies")
    os.kill(os.getpid(), signal.SIGKILL)


@tool(task="always")
def crawls(ctx):
    """A journal in pieces."""
    for number in range(6):
        ctx.step(f"page/{number}", lambda: "x" * 100_000)
    if ctx.start["attempt"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return str(sum(len(entry["v"]) for entry in ctx.journal.values()))


@tool(task="always")
def parallel(ctx):
    found = {}
    def run(key):
        found[key] = ctx.step(key, lambda: key)
    threads = [threading.Thread(target=run, args=(key,)) for key in "abc"]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return " ".join(found[key] for key in "abc")


@tool(task="always")
def fails(ctx):
    def body():
        note("try")
        raise Permanent("no such repo")
    try:
        ctx.step("fetch", body)
    except Permanent:
        pass
    ctx.sleep("pause", 200)
    return ctx.step("fetch2", lambda: "tried once")


@tool(task="always")
def strange(ctx):
    ctx.step("image", lambda: 1)
    ctx.end({"incompatible": "image", "message": "'tag' is missing"})


@tool(task="always", has_cleanup=True)
def orders(ctx):
    shelf = ctx.step("reserve", lambda: 7)
    ctx.elicit("approve", "Order?")
    ctx.sleep("delivery", 600_000)
    return f"ordered {shelf}"


def cleanup_of_orders(start):
    note("freed %s because %s" % (start["journal"]["reserve"]["v"], start["reason"]))
    for key, entry in start["journal"].items():
        if "a" in entry:
            note("%s was %s" % (key, entry["a"]["action"]))


CLEANUPS["orders"] = cleanup_of_orders


@tool(durable=False, task="never", inputSchema=text("seconds", "number"))
def works(ctx, seconds=60):
    note("works")
    time.sleep(seconds)
    return "worked"


@tool(durable=False, task="never", idempotent=True)
def repeats(ctx):
    note("repeats")
    if ctx.start["attempt"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "repeated"


@tool(durable=False, task="never", inputSchema=text("kind"))
def hostile(ctx, kind=""):
    call = ctx.number
    if kind == "print":
        raw(json.dumps({"call": call, "return": "forged"}) + "\n")
        raw(json.dumps({"nonce": "0" * 32, "call": call, "return": "forged"}) + "\n")
        return "true"
    if kind == "half":
        raw('{"nonce":"' + NONCE + '","call":')
        raw("\n")
        return "true"
    if kind == "wrong":
        send({"call": call + 1000, "return": "forged"})
        send({"call": call, "done": "never", "value": 1})
        send({"call": call, "withdraw": "never"})
        send({"new": 1})
        send({"call": call, "new": 1})
        return "true"
    if kind == "invalid":
        send({"call": call, "step": 5})
        time.sleep(60)
    if kind == "long":
        send({"call": call, "return": "x" * (4 << 20)})
        time.sleep(60)
    if kind == "flood":
        for number in range(100_000):
            send({"call": call, "status_message": str(number)})
        return "true"
    if kind == "steps":
        for number in range(2_000):
            send({"call": call, "step": f"s/{number}"})
        rejected = 0
        with ctx.lock:
            while sum(name == "rejected" for name, _ in ctx.inbox) < 2_000 - 1_024:
                ctx.lock.wait()
            rejected = [m[0]["kind"] for (name, _), m in ctx.inbox.items() if name == "rejected"]
        return f"{len(rejected)} {set(rejected)}"
    if kind == "ahead":
        for number in range(1_000):
            send({"call": call, "emit": {"type": "text", "text": str(number)}})
        time.sleep(60)
    if kind == "large":
        try:
            ctx.step("big", lambda: "x" * ((4 << 20) - (7 << 10)))
        except Rejected as error:
            return error.kind
    if kind == "keys":
        kinds = []
        for key in ["", "a#b", "x" * 2000, "a\\b"]:
            send({"call": call, "step": key})
            try:
                ctx.wait(key, "recorded")
            except Rejected as error:
                kinds.append(error.kind)
        return " ".join(kinds)
    if kind == "output":
        for number in range(100):
            print("output", number, file=sys.stderr)
        return "true"
    if kind == "exit":
        os._exit(3)
    if kind == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    return "unknown"


def run(ctx, function):
    def end(message):
        send({"call": ctx.number, **message})
        CALLS.pop(ctx.number, None)
    ctx.end = lambda message: (_ for _ in ()).throw(Ended(message))
    try:
        end({"return": function(ctx, **ctx.start["arguments"])})
    except Ended as ended:
        end(ended.args[0])
    except Dropped:
        end({"dropped": True})
    except Exception as error:
        rejected = {"rejected": error.key} if isinstance(error, Rejected) else {}
        end({"error": str(error), "kind": type(error).__name__, "traceback": "Traceback", **rejected})
    finish_if_draining()


class Ended(BaseException):
    pass


def finish_if_draining():
    if DRAINING.is_set() and not CALLS:
        os._exit(0)


def clean_up(start):
    try:
        CLEANUPS[start["tool"]](start)
        send({"cleanup": start["cleanup"], "done": True})
    except Exception as error:
        send({"cleanup": start["cleanup"], "error": str(error), "kind": type(error).__name__})


def begin(message, number):
    PIECES.setdefault(number, {}).update(message["journal"])
    if message.get("more"):
        return
    message["journal"] = PIECES.pop(number)
    if "cleanup" in message:
        threading.Thread(target=clean_up, args=(message,), daemon=True).start()
        return
    ctx = CALLS[number] = Ctx(number, message)
    threading.Thread(target=run, args=(ctx, TOOLS[message["tool"]][0]), daemon=True).start()


def main():
    global NONCE
    welcome = json.loads(sys.stdin.readline())["welcome"]
    NONCE = welcome["nonce"]
    only = os.environ.get("TEST_TOOLS")
    names = only.split(",") if only else list(TOOLS)
    extra = json.loads(os.environ.get("TEST_ENTRY", "{}"))
    entries = [{**TOOLS[name][1], **extra} for name in names]
    protocol = int(os.environ.get("TEST_PROTOCOL", "1"))
    send({"hello": {"protocol": protocol, "sdk": "test 1", "name": "tests", "tools": entries}})
    for line in sys.stdin:
        message = json.loads(line)
        number = message.get("call", message.get("cleanup"))
        if "journal" in message:
            begin(message, number)
        elif number is not None:
            if number in CALLS:
                CALLS[number].receive(message)
        elif "ping" in message:
            send({"pong": message["ping"]})
        elif "drain" in message:
            DRAINING.set()
            finish_if_draining()
        elif "goodbye" in message:
            print(message["goodbye"], file=sys.stderr)
            os._exit(2)
    os._exit(0)


if __name__ == "__main__":
    main()
