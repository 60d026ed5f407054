"""Rejects and releases rows of a batch: the query tells the driver's runner, which acknowledges them.

The runner listens on the loopback address. Its port and a token are in a file that only this user can read; tasks get
both with their ranges. A row without a decision is accepted: it is in the sink.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import socketserver
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.spark.errors import OttlaSparkError
from ottla.wire.acknowledge_type import AcknowledgeType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from ottla.spark.share.decisions import Decisions

__all__ = ["Address", "Listener", "by_partition", "reject", "release", "send"]

TIMEOUT_S: Final = 10.0
LINE_MAX_BYTES: Final = 16 * 1024 * 1024
COLUMNS: Final = ("acquiredSeq", "topic", "partition", "offset")
Rows = dict[tuple[int, str, int], list[int]]
"""Batch, topic and partition -> offsets."""


class Address(NamedTuple):
    """The address of the runner of a query."""

    group: str
    port: int
    token: str


def reject(rows: DataFrame | Iterable[Row], batch_id: int | None = None, *, group: str | None = None) -> None:
    """Reject rows of the current batch, so that they are not delivered again. For use in foreachBatch.

    `group` is needed only if several queries of this user read share groups on this machine.
    """
    _decide(rows, group, AcknowledgeType.REJECT)


def release(rows: DataFrame | Iterable[Row], batch_id: int | None = None, *, group: str | None = None) -> None:
    """Release rows of the current batch, so that they are delivered again."""
    _decide(rows, group, AcknowledgeType.RELEASE)


def _decide(rows: DataFrame | Iterable[Row], group: str | None, kind: int) -> None:
    offsets = by_partition(rows.select(*COLUMNS).collect() if hasattr(rows, "select") else rows)
    if not offsets:
        return
    addresses = _addresses(group)
    for number, address in enumerate(addresses, 1):
        try:
            return send(address, kind, offsets)
        except OttlaSparkError:  # another query on the same group has these rows
            if number == len(addresses):
                raise


def by_partition(rows: Iterable[Any]) -> Rows:
    offsets: Rows = {}
    for row in rows:
        offsets.setdefault((row["acquiredSeq"], row["topic"], row["partition"]), []).append(row["offset"])
    return offsets


def send(address: Address, kind: int, offsets: Rows) -> None:
    """Send decisions to the runner; it has received them when this returns."""
    decisions = [[*key, list(each)] for key, each in offsets.items()]
    line = json.dumps({"token": address.token, "kind": kind, "decisions": decisions}) + "\n"
    try:
        with socket.create_connection(("127.0.0.1", address.port), TIMEOUT_S) as connection:
            connection.sendall(line.encode())
            answer = connection.makefile().readline().strip()
    except OSError as error:
        raise OttlaSparkError(f"cannot reach the query on share group {address.group}: {error}") from None
    if answer != "ok":
        raise OttlaSparkError(
            f"the query on share group {address.group} rejected a decision: {answer or 'no response'}"
        )


# --- finding each other -----------------------------------------------------------------------------------------------


def _directory() -> Path:
    path = Path(tempfile.gettempdir()) / f"ottla-share-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise OttlaSparkError(f"directory {path}: it is writable by others, so its content is not trusted")
    return path


def _addresses(group: str | None) -> list[Address]:
    """The addresses of the queries on a group, or on the only group."""
    known = [Address(**json.loads(path.read_text())) for path in _directory().glob("*.json") if _is_alive(path)]
    wanted = [each for each in known if group in (None, each.group)]
    if len({each.group for each in wanted}) != 1:
        names = ", ".join(sorted({each.group for each in known})) or "none"
        raise OttlaSparkError(f"choose the share group with group=…; running queries: {names}")
    return wanted


def _is_alive(path: Path) -> bool:
    try:
        os.kill(int(path.stem.partition("-")[0]), 0)
    except (OSError, ValueError):
        path.unlink(missing_ok=True)  # its process is gone
        return False
    return True


class Listener:
    """Receives decisions on the driver, in a thread of its own."""

    def __init__(self, group: str, decisions: Decisions) -> None:
        self._decisions = decisions
        self._token = secrets.token_urlsafe(24)
        listener = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                answer = listener.take(self.rfile.readline(LINE_MAX_BYTES))
                self.wfile.write(f"{answer}\n".encode())

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = Address(group, self._server.server_address[1], self._token)
        threading.Thread(target=self._server.serve_forever, name="ottla-share-decisions", daemon=True).start()
        self._path = _directory() / f"{os.getpid()}-{self.address.port}.json"
        self._path.touch(mode=0o600)
        self._path.write_text(json.dumps(self.address._asdict()))

    def take(self, line: bytes) -> str:
        try:
            said: Any = json.loads(line)
            if not secrets.compare_digest(str(said["token"]), self._token):
                return "wrong token"
            return self._add(int(said["kind"]), said["decisions"])
        except (ValueError, KeyError, TypeError) as error:
            return f"malformed request: {error}"

    def _add(self, kind: int, decisions: Iterable[Any]) -> str:
        if kind not in (AcknowledgeType.REJECT, AcknowledgeType.RELEASE):
            return f"{kind} is not a decision"
        for seq, topic, partition, offsets in decisions:
            if not self._decisions.add(int(seq), topic, int(partition), map(int, offsets), kind):
                return f"the current batch does not have these rows of topic {topic} partition {partition}"
        return "ok"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._path.unlink(missing_ok=True)
