#!/usr/bin/env python3
"""Replays transcripts against a tool worker: replay.py [--plain] [NAME …] -- COMMAND …

`--plain` takes the transcripts for plain implementations. The page docs/workers-protocol.md has the format.
"""

import json
import os
import pathlib
import queue
import secrets
import signal
import subprocess
import sys
import threading

FOLDER = pathlib.Path(__file__).parent
TIMEOUT = 30


class Mismatch(Exception):
    """A line that the transcript does not have."""


def names(audience):
    """Returns the names of the transcripts for an audience."""
    files = sorted(FOLDER.glob("*.jsonl"))
    return [file.stem for file in files if audience in json.loads(file.read_text().splitlines()[0])["for"]]


class Process:
    """A process of the tool worker and its lines."""

    def __init__(self, command):
        self.nonce = secrets.token_hex(16)
        env = {**os.environ, "OUTLIVE_WORKER": "1"}
        pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
        self.process = subprocess.Popen(command, **pipes, env=env, start_new_session=True)
        self.lines, self.errors = queue.Queue(), []
        self.readers = [threading.Thread(target=target, daemon=True) for target in (self.read_output, self.read_errors)]
        for reader in self.readers:
            reader.start()

    def read_output(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def read_errors(self):
        self.errors.extend(self.process.stderr)

    def send(self, line):
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":")).replace('"$NONCE"', f'"{self.nonce}"')
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        """Returns the next line without its nonce."""
        try:
            line = self.lines.get(timeout=TIMEOUT)
        except queue.Empty:
            raise Mismatch(f"the tool worker has sent nothing for {TIMEOUT} s") from None
        if line is None:
            raise Mismatch("the tool worker has ended its output")
        members = json.loads(line)
        if members.pop("nonce", None) != self.nonce:
            raise Mismatch(f"the line has another nonce: {line!r}")
        return members

    def exit_code(self):
        code = self.process.wait(TIMEOUT)
        extra = self.lines.get(timeout=TIMEOUT)
        if extra is not None:
            raise Mismatch(f"the tool worker has sent another line: {extra!r}")
        return code

    def kill(self):
        """Kills the process and its children, as the server does."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # It has exited.
        self.process.wait()

    def close(self):
        self.kill()
        for reader in self.readers:
            reader.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


def check(expected, actual, path, is_plain):
    """Raises if a line differs from the transcript."""
    if expected == "$ANY":
        return
    if expected == "$TOOLS":
        return check_tools(actual, is_plain)
    if not isinstance(expected, dict) or not isinstance(actual, dict):
        if expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
            raise Mismatch(f"`{path}` is {actual!r}, not {expected!r}")
        return
    for name in expected.keys() | actual.keys():
        if name not in expected:
            raise Mismatch(f"`{path}` has the member `{name}`: {actual[name]!r}")
        if expected[name] == "$OPTIONAL":
            continue
        if name not in actual:
            raise Mismatch(f"`{path}` lacks the member `{name}`")
        check(expected[name], actual[name], f"{path}.{name}", is_plain)


def check_tools(tools, is_plain):
    expected = {tool["name"]: tool for tool in json.loads((FOLDER / "tools.json").read_text())}
    declared = {tool["name"]: {key: value for key, value in tool.items() if key != "code"} for tool in tools}
    if unknown := declared.keys() - expected.keys():
        raise Mismatch(f"unknown tools: {sorted(unknown)}")
    if not is_plain and declared.keys() != expected.keys():
        raise Mismatch(f"missing tools: {sorted(expected.keys() - declared.keys())}")
    for name, tool in declared.items():
        check(expected[name], tool, name, is_plain)


def expect(process, expected, is_plain):
    actual = process.receive()
    keys = expected.get("replayed", ())
    while "replayed" in actual and len(actual["replayed"]) < len(keys):
        actual["replayed"] = actual["replayed"] + process.receive().get("replayed", ["another line"])
    check(expected, actual, "line", is_plain)


def expect_any(process, sequences, is_plain):
    left = [list(sequence) for sequence in sequences]
    while any(left):
        actual, errors = process.receive(), []
        for sequence in filter(None, left):
            try:
                check(sequence[0]["W"], actual, "line", is_plain)
                sequence.pop(0)
                break
            except Mismatch as error:
                errors.append(str(error))
        else:
            raise Mismatch(f"{actual} matches no line: {errors}")


def replay(name, command, is_plain=False):
    """Replays one transcript. Raises `Mismatch` with the number of the line."""
    process = None
    try:
        for number, text in enumerate((FOLDER / f"{name}.jsonl").read_text().splitlines(), 1):
            line = json.loads(text)
            try:
                if "welcome" in line.get("S", {}):
                    if process:
                        process.close()
                    process = Process(command)
                if "S" in line:
                    process.send(line["S"])
                elif "W" in line:
                    expect(process, line["W"], is_plain)
                elif "any" in line:
                    expect_any(process, line["any"], is_plain)
                elif "kill" in line:
                    process.kill()
                elif "eof" in line:
                    process.process.stdin.close()
                elif "exit" in line and (code := process.exit_code()) != line["exit"]:
                    raise Mismatch(f"the exit code is {code}, not {line['exit']}")
            except (Mismatch, OSError, ValueError, subprocess.TimeoutExpired) as error:
                shown = b"".join(process.errors[-20:]).decode(errors="replace")
                raise Mismatch(f"{name}.jsonl:{number}: {error}\n{shown}") from None
    finally:
        if process:
            process.close()


def main():
    if "--" not in sys.argv:
        sys.exit(__doc__)
    options, command = sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
    is_plain = "--plain" in options
    chosen = [option for option in options if option != "--plain"] or names("plain" if is_plain else "package")
    failed = 0
    for name in chosen:
        try:
            replay(name, command, is_plain)
            print("ok  ", name)
        except Mismatch as error:
            failed += 1
            print("FAIL", error)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
