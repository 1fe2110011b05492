"""The ten-step tool for FastMCP with docket: `fastmcp_ten.py EXECUTIONS REDIS SECONDS` on the port of `PORT`.

`SECONDS` is the redelivery timeout. Steps append one line per execution to the file `EXECUTIONS`.
"""

import asyncio
import datetime
import os
import sys
import time

import uvicorn
from fastmcp import FastMCP
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension

EXECUTIONS, REDIS, SECONDS = sys.argv[1:]
server = FastMCP("ten")
server.add_extension(TasksExtension(url=REDIS, redelivery_timeout=datetime.timedelta(seconds=float(SECONDS))))


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
    with open(EXECUTIONS, "a") as executions:
        executions.write(f"{key} {number} {os.getpid()} {time.time_ns() // 1_000_000}\n")
    if is_killed:
        await asyncio.sleep(3600)
    return number


@server.tool(task=TaskConfig(mode="required"), output_schema=None)
async def ten(key: str) -> str:
    """Ten steps. The first execution of the fifth lasts until its process is killed."""
    return f"{key} {sum([await execute(key, number) for number in range(1, 11)])}"


# uvicorn logs when it listens: "Uvicorn running on …".
uvicorn.run(server.http_app(), host="127.0.0.1", port=int(os.environ["PORT"]))
