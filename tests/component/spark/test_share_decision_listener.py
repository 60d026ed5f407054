"""How a query tells the driver's runner to reject and release rows."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.spark.errors import OttlaSparkError
from ottla.spark.share import reject, release
from ottla.spark.share.decision_listener import Address, Listener, send
from ottla.spark.share.decisions import Decisions
from ottla.spark.share.offsets import Acquisition, ShareOffset, TopicIdPartition
from ottla.wire.acknowledge_type import AcknowledgeType

HERE = TopicIdPartition("id-jobs", 0)
ROWS = [{"acquiredSeq": 4, "topic": "jobs", "partition": 0, "offset": offset} for offset in (3, 5)]
Listen = Callable[..., tuple[Listener, Decisions]]


@pytest.fixture
def listen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listen]:
    """Queries that run a batch with some offsets of one partition."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    listeners: list[Listener] = []

    def make(group: str = "g", first: int = 0, last: int = 9) -> tuple[Listener, Decisions]:
        decisions = Decisions()
        decisions.expect(ShareOffset(4, group, {HERE: (Acquisition(first, last, 1),)}, {"id-jobs": "jobs"}))
        listeners.append(Listener(group, decisions))
        return listeners[-1], decisions

    yield make
    for each in listeners:
        each.close()


def test_rows_are_rejected_and_released(listen: Listen) -> None:
    _, decisions = listen()
    reject(ROWS[:1])
    release(ROWS[1:], 17)
    assert decisions.take(4) == {HERE: {3: AcknowledgeType.REJECT, 5: AcknowledgeType.RELEASE}}


def test_frames_are_collected(listen: Listen) -> None:
    class Frame:
        def select(self, *columns: str) -> Any:
            self.columns = columns
            return self

        def collect(self) -> list[dict[str, Any]]:
            return [{name: row[name] for name in self.columns} for row in ROWS]

    _, decisions = listen()
    reject(Frame())  # type: ignore[arg-type]
    assert decisions.take(4) == {HERE: {3: AcknowledgeType.REJECT, 5: AcknowledgeType.REJECT}}


def test_no_rows_need_no_query() -> None:
    reject([], group="nobody")


def test_several_queries_on_one_group_have_different_rows(listen: Listen) -> None:
    _, decisions = listen()
    _, others = listen(first=100, last=109)
    reject(ROWS)
    assert (decisions.take(4), others.take(4)) == ({HERE: {3: AcknowledgeType.REJECT, 5: AcknowledgeType.REJECT}}, {})
    with pytest.raises(OttlaSparkError, match="rejected a decision: the current batch does not have these rows"):
        reject([{**ROWS[0], "offset": 50}])


def test_with_several_groups_one_has_to_be_named(listen: Listen) -> None:
    listen("g")
    _, decisions = listen("h")
    with pytest.raises(OttlaSparkError, match="choose the share group with group=…; running queries: g, h"):
        reject(ROWS)
    reject(ROWS, group="h")
    assert decisions.take(4)


def test_no_query_runs(listen: Listen) -> None:
    with pytest.raises(OttlaSparkError, match="running queries: none"):
        reject(ROWS)


def test_only_who_has_the_token_is_heard(listen: Listen) -> None:
    listener, decisions = listen()
    with pytest.raises(OttlaSparkError, match="rejected a decision: wrong token"):
        send(listener.address._replace(token="guessed"), AcknowledgeType.REJECT, {(4, "jobs", 0): [3]})
    assert decisions.take(4) == {}


@pytest.mark.parametrize("line", [b"", b"[]\n", b"{}\n", b'{"token": 1}\n', b"\xff\n"])
def test_what_is_not_understood_is_answered(listen: Listen, line: bytes) -> None:
    listener, _ = listen()
    assert listener.take(line).startswith(("malformed request", "wrong token"))


def test_only_rejecting_and_releasing_are_decisions(listen: Listen) -> None:
    listener, _ = listen()
    with pytest.raises(OttlaSparkError, match="1 is not a decision"):
        send(listener.address, 1, {(4, "jobs", 0): [3]})


def test_a_query_that_has_ended_cannot_be_told(listen: Listen) -> None:
    listener, _ = listen()
    listener.close()
    with pytest.raises(OttlaSparkError, match="cannot reach the query on share group g: "):
        send(listener.address, AcknowledgeType.REJECT, {(4, "jobs", 0): [3]})


def test_where_queries_listen_is_for_their_user_alone(listen: Listen, tmp_path: Path) -> None:
    listener, _ = listen()
    (path,) = tmp_path.glob("*/*.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert Address(**json.loads(path.read_text())) == listener.address
    path.parent.chmod(0o777)
    with pytest.raises(OttlaSparkError, match="it is writable by others"):
        reject(ROWS)
    path.parent.chmod(0o700)


def test_files_of_dead_processes_are_removed(listen: Listen, tmp_path: Path) -> None:
    _, decisions = listen()
    (path,) = tmp_path.glob("*/*.json")
    left = path.parent / "4194999-0.json"  # above the highest process id
    left.write_text(path.read_text().replace('"g"', '"old"'))
    reject(ROWS)
    assert decisions.take(4)
    assert not left.exists()
    assert str(os.getpid()) in path.name
