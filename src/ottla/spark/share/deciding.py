"""Rejecting and releasing rows of a batch: the query tells the driver's runner, which acknowledges them so.

The runner listens on the loopback address. Where, and a token, stands in a file that only this user can read; tasks get
both with what they have to read. A decision that does not arrive counts as acceptance: the row is in the sink.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import socketserver
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.spark.errors import OttlaSparkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from ottla.spark.share.plan import Decisions

__all__ = ["Address", "Listener", "reject", "release", "send"]

RELEASE: Final = 2
REJECT: Final = 3
TIMEOUT_S: Final = 10.0
LINE_MAX_BYTES: Final = 16 * 1024 * 1024
COLUMNS: Final = ("topicId", "partition", "offset", "acquiredSeq")


class Address(NamedTuple):
    """Where the runner of a query listens."""

    group: str
    port: int
    token: str


def reject(rows: DataFrame | Iterable[Row], batch_id: int | None = None, *, group: str | None = None) -> None:
    """Reject rows of the batch that is being processed: nobody shall get them again. For use in foreachBatch.

    `group` is needed only if several queries of this user read share groups on this machine.
    """
    _decide(rows, group, REJECT)


def release(rows: DataFrame | Iterable[Row], batch_id: int | None = None, *, group: str | None = None) -> None:
    """Release rows of the batch that is being processed: some member of the group gets them again."""
    _decide(rows, group, RELEASE)


def _decide(rows: DataFrame | Iterable[Row], group: str | None, kind: int) -> None:
    found = rows.select("topic", "partition", "offset", "acquiredSeq").collect() if hasattr(rows, "select") else rows
    offsets: dict[tuple[int, str, int], list[int]] = {}
    for row in found:
        offsets.setdefault((row["acquiredSeq"], row["topic"], row["partition"]), []).append(row["offset"])
    if offsets:
        send(_address(group), kind, offsets)


def send(address: Address, kind: int, offsets: Mapping[tuple[int, str, int], Iterable[int]]) -> None:
    """Tell the runner; it has heard when this returns."""
    decisions = [[*key, list(each)] for key, each in offsets.items()]
    line = json.dumps({"token": address.token, "kind": kind, "decisions": decisions}) + "\n"
    try:
        with socket.create_connection(("127.0.0.1", address.port), TIMEOUT_S) as connection:
            connection.sendall(line.encode())
            answer = connection.makefile().readline().strip()
    except OSError as error:
        raise OttlaSparkError(f"the query on share group {address.group} cannot be told: {error}") from None
    if answer != "ok":
        raise OttlaSparkError(f"the query on share group {address.group} refuses a decision: {answer or 'no answer'}")


# --- finding each other -----------------------------------------------------------------------------------------------


def _directory() -> Path:
    path = Path(tempfile.gettempdir()) / f"ottla-share-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def _address(group: str | None) -> Address:
    known = [Address(**json.loads(path.read_text())) for path in _directory().glob("*.json") if _is_alive(path)]
    wanted = [each for each in known if group in (None, each.group)]
    if len(wanted) != 1:
        names = ", ".join(sorted(each.group for each in known)) or "none"
        raise OttlaSparkError(f"say which share group it is with group=…; queries run on: {names}")
    return wanted[0]


def _is_alive(path: Path) -> bool:
    try:
        os.kill(int(path.stem), 0)
    except (OSError, ValueError):
        path.unlink(missing_ok=True)  # its process is gone
        return False
    return True


class Listener:
    """Hears decisions on the driver, in a thread of its own."""

    def __init__(self, group: str, decisions: Decisions, topic_ids: Mapping[str, str]) -> None:
        """`topic_ids` is looked up by name when a decision comes."""
        self._decisions = decisions
        self._topic_ids = topic_ids
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
        path = _directory() / f"{os.getpid()}.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(self.address._asdict()))

    def take(self, line: bytes) -> str:
        try:
            said: Any = json.loads(line)
            if not secrets.compare_digest(str(said["token"]), self._token):
                return "wrong token"
            return self._add(int(said["kind"]), said["decisions"])
        except (ValueError, KeyError, TypeError) as error:
            return f"not understood: {error}"

    def _add(self, kind: int, decisions: Iterable[Any]) -> str:
        from ottla.spark.share.offsets import Place

        if kind not in (REJECT, RELEASE):
            return f"{kind} is no decision"
        for seq, topic, partition, offsets in decisions:
            topic_id = self._topic_ids.get(topic)
            if topic_id is None:
                return f"topic {topic} is not in the batch"
            self._decisions.add(int(seq), Place(topic_id, int(partition)), map(int, offsets), kind)
        return "ok"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        (_directory() / f"{os.getpid()}.json").unlink(missing_ok=True)
