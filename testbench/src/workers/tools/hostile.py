"""A hostile tool worker with the bare protocol: each argument of its tool breaks the protocol in another way."""

import json
import os
import sys
import time

NONCE = json.loads(sys.stdin.readline())["welcome"]["nonce"]


def send(**members):
    sys.stdout.write(json.dumps({"nonce": NONCE, **members}) + "\n")
    sys.stdout.flush()


def receive(call, *names):
    """Returns the next line of the call with one of these members; responds to pings."""
    for line in sys.stdin:
        message = json.loads(line)
        if "ping" in message:
            send(pong=message["ping"])
        elif message.get("call") == call and any(name in message for name in names):
            return message
    os._exit(0)


def misbehave(call, kind, is_first):
    if kind == "endless line":
        for _ in range(64):
            sys.stdout.write("x" * (1 << 20))
        sys.stdout.write("\n")
    elif kind == "flood of output":
        for number in range(200_000):
            sys.stdout.write(f"output {number}\n")
    elif kind == "flood of log messages":
        for number in range(200_000):
            send(call=call, log="info", data=number)
    elif kind == "lines of unknown calls":
        for number in range(50_000):
            send(call=call + 1_000 + number, step="x")
    elif kind == "invalid JSON":
        for text in ['{"nonce":', "{}", '{"nonce":"' + NONCE + '","call":', "[1]", "\0" * 1_000]:
            sys.stdout.write(text + "\n")
    elif kind == "values of 5 MB" and is_first:
        send(call=call, step="big")
        send(call=call, done="big", value="x" * 5_000_000)
        time.sleep(60)
    elif kind == "silence" and is_first:
        time.sleep(3600)
    elif kind == "closed output" and is_first:
        os.close(1)
        time.sleep(3600)
    elif kind == "exit at start" and is_first:
        os._exit(3)
    elif kind.startswith("exit"):
        exits(call, kind, is_first)


def exits(call, kind, is_first):
    def end(state):
        if kind == f"exit {state}" and is_first:
            sys.stdout.flush()
            os._exit(3)

    send(call=call, step="s")
    end("in a step")
    send(call=call, done="s", value=1)
    end("after a step")
    receive(call, "recorded", "rejected")
    end("after its record")
    send(call=call, emit={"type": "text", "text": "x"})
    end("after a segment")
    send(call=call, sleep="nap", ms=1)
    end("in a timer")
    receive(call, "woke", "rejected")
    sys.stdout.write('{"nonce":"' + NONCE + '","call":' + str(call))
    end("in a line")
    sys.stdout.write(',"status_message":"x"}\n')


def main():
    schema = {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}
    tool = {"name": "hostile", "durable": True, "task": "always", "inputSchema": schema}
    send(hello={"protocol": 1, "sdk": "hostile 1", "tools": [tool]})
    for line in sys.stdin:
        message = json.loads(line)
        if "ping" in message:
            send(pong=message["ping"])
        elif "drain" in message:
            os._exit(0)
        elif "tool" in message:
            call, is_first = message["call"], message["attempt"] == 1 and not message["journal"]
            misbehave(call, message["arguments"]["kind"], is_first)
            send(**{"call": call, "return": "survived"})


main()
