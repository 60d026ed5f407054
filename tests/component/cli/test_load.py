"""`ottla load` on a node: every record that it counts is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.component.broker.raw_client import RunningNode
from tests.component.cli.live import Live, live_node


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    yield from live_node(tmp_path_factory.mktemp("node"))


@pytest.fixture
def ottla(running: RunningNode, capsys: pytest.CaptureFixture[str]) -> Live:
    return Live(running, capsys)


def test_records_are_written_read_and_counted(ottla: Live):
    done = ottla.json("load", "timed", "--create", "--rate", "400", "--records", "60", "--size", "64", "--read")
    written, read = done["rows"]
    assert (written["what"], written["records"], read["what"], read["records"]) == ("write", 60, "read", 60)
    assert 0 < written["p50_ms"] <= written["p99_ms"] <= written["max_ms"]
    assert sum(each["written"] for each in done["seconds"]) == 60
    assert done["failed"] == 0
    (offsets,) = ottla.json("topics", "offsets", "timed")["rows"]
    assert offsets["end_offset"] == 60


def test_without_a_rate(ottla: Live):
    ottla("topics", "create", "fast", "--partitions", "3")
    lines = ottla.lines("load", "fast", "--records", "500", "--keys", "7", "--compression", "lz4", "-q")
    assert lines[1].split()[:2] == ["write", "500"]
    keys = {line.split()[4] for line in ottla.lines("topics", "consume", "fast", "--max", "100")}
    assert keys <= {str(number) for number in range(7)}


def test_bad_input(ottla: Live):
    assert "--create creates it" in ottla.refused(1, "load", "nowhere")
    assert "--read needs values of at least 24 bytes" in ottla.refused(2, "load", "x", "--size", "8", "--read")


def test_records_that_are_refused_are_told(ottla: Live):
    ottla("topics", "create", "small", "--config", "max.message.bytes=100")
    code = ottla.code("load", "small", "--records", "10", "--size", "1000")
    assert code == 1
    assert "10 records were not written: " in ottla.capture.readouterr().err
