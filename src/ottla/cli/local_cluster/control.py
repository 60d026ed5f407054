"""How commands reach a cluster that runs in another terminal.

`ottla cluster up` listens on a port of the loopback address. The file `cluster.json` in its directory, which only its
owner can read, has the port and a secret that every order must have. An order is one JSON object, and so is the answer.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any, Final

from ottla.cli.failure import EXIT_REFUSED, EXIT_UNREACHABLE, Failure

__all__ = ["TEMPORARY_PREFIX", "Control", "find_cluster", "is_running", "order"]

STATE_FILE: Final = "cluster.json"
TEMPORARY_PREFIX: Final = "ottla-cluster-"
LOOPBACK: Final = "127.0.0.1"
ANSWER_MAX_SECONDS: Final = 90.0
_ORDER_MAX_BYTES: Final = 1 << 16
_READ_MAX_SECONDS: Final = 2.0


class Control:
    """Takes the orders of other commands, one at a time."""

    def __init__(self, directory: Path, perform: Callable[..., Any]) -> None:
        """`perform` is called with the command and its arguments; a Failure that it raises is the answer."""
        self._perform = perform
        self._secret = secrets.token_hex()
        self._listener = socket.create_server((LOOPBACK, 0))
        self._path = directory / STATE_FILE
        state = {"port": self._listener.getsockname()[1], "secret": self._secret, "pid": os.getpid()}
        self._path.unlink(missing_ok=True)
        with os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(state, file)

    def serve(self, seconds: float) -> None:
        """Wait for an order, at most for a time, and carry it out."""
        self._listener.settimeout(seconds)
        try:
            connection, _ = self._listener.accept()
        except TimeoutError:
            return
        with connection, contextlib.suppress(OSError):  # whoever asked has gone
            answer = self._answer(_read_line(connection, _READ_MAX_SECONDS))
            connection.settimeout(_READ_MAX_SECONDS)
            connection.sendall(json.dumps(answer).encode() + b"\n")

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            given = json.loads(line)
            secret, command, arguments = given["secret"], given["command"], given["arguments"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return {"problem": "not a valid order"}
        if not hmac.compare_digest(str(secret).encode(errors="replace"), self._secret.encode()):
            return {"problem": "the secret is wrong"}
        try:
            return {"value": self._perform(command, **arguments)}
        except Failure as failure:
            return {"problem": failure.problem, "advice": failure.advice}

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        self._listener.close()


def order(directory: Path, command: str, **arguments: Any) -> Any:  # noqa: ANN401 - what the command gives
    """Have the cluster of a directory carry out a command."""
    state = _read_state(directory)
    if state is None:
        raise Failure(f"no cluster is running in {directory}", "start one: ottla cluster up", code=EXIT_UNREACHABLE)
    line = json.dumps({"secret": state["secret"], "command": command, "arguments": arguments}).encode() + b"\n"
    try:
        with socket.create_connection((LOOPBACK, state["port"]), ANSWER_MAX_SECONDS) as connection:
            connection.sendall(line)
            answer = json.loads(_read_line(connection, ANSWER_MAX_SECONDS))
    except (OSError, ValueError) as error:
        raise Failure(
            f"the cluster in {directory} is not responding: {error}",
            "if it was killed, start it again: ottla cluster up --data DIR",
            code=EXIT_UNREACHABLE,
        ) from None
    if "problem" in answer:
        raise Failure(answer["problem"], answer.get("advice", ""), code=EXIT_REFUSED)
    return answer["value"]


def is_running(directory: Path) -> bool:
    """Whether a cluster of this directory takes orders."""
    state = _read_state(directory)
    if state is None:
        return False
    try:
        socket.create_connection((LOOPBACK, state["port"]), 1).close()
    except OSError:
        return False
    return True


def find_cluster(data: Path | None) -> Path:
    """The directory that was given, or that of the only cluster with temporary data that runs."""
    if data is not None:
        return data
    places = Path(tempfile.gettempdir()).glob(f"{TEMPORARY_PREFIX}*/{STATE_FILE}")
    running = sorted(each.parent for each in places if is_running(each.parent))
    if not running:
        raise Failure("no cluster with temporary data is running", "choose one with --data DIR", code=EXIT_UNREACHABLE)
    if len(running) > 1:
        raise Failure("several clusters are running", f"choose one with --data {' or '.join(map(str, running))}")
    return running[0]


def _read_state(directory: Path) -> dict[str, Any] | None:
    try:
        state: dict[str, Any] = json.loads((directory / STATE_FILE).read_text())
    except (OSError, ValueError):
        return None
    return state


def _read_line(connection: socket.socket, seconds: float) -> bytes:
    """A line, all of which has to come in time."""
    until = monotonic() + seconds
    line = b""
    while not line.endswith(b"\n") and len(line) < _ORDER_MAX_BYTES:
        left = until - monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        connection.settimeout(left)
        piece = connection.recv(4096)
        if not piece:
            break
        line += piece
    return line
