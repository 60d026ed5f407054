"""The programs of the pages about Spark, word for word but for addresses and paths: spark.md, spark-files.md,
spark-share.md, spark-sink.md."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ottla.client import TopicPartition, group_offsets
from tests.docs.blocks import DOCS, blocks
from tests.interop.spark.conftest import Broker
from tests.interop.spark.queries import Queries
from tests.interop.spark.share_groups import ShareGroup
from tests.interop.spark.topics import Topics

Names = dict[str, Any]
RECORDS = 6


class Page:
    """Runs the programs of a page one after the other; each has the names of those before."""

    def __init__(self, spark: Any, places: Mapping[str, str]) -> None:
        self._spark = spark
        self._places = places

    def run(self, name: str, **names: Any) -> Names:
        page = DOCS / "how-to" / name
        there: Names = {"spark": self._spark, **names}
        for block in blocks(page):
            if block.language == "python":
                program = block.text
                for told, here in self._places.items():
                    program = program.replace(told, here)
                exec(compile(program, f"{page}:{block.line}", "exec"), there)
        for query in self._spark.streams.active:
            query.processAllAvailable()
            query.stop()
        return there


@pytest.fixture
def page(spark: Any, broker: Broker, tmp_path: Path) -> Page:
    places = {
        "localhost:9092": broker.bootstrap_servers,
        "/var/lib/kafka": str(broker.data_dir),
        "/checkpoints": str(tmp_path / "checkpoints"),
        '"/jobs"': f'"{tmp_path / "jobs"}"',
    }
    return Page(spark, places)


@pytest.fixture
def filled(topics: Topics) -> Iterator[Callable[[str], None]]:
    """Creates topics with some records each, and deletes them at the end."""
    made: list[str] = []

    def fill(name: str) -> None:
        made.append(topics.create(name))
        topics.fill(name, 0, RECORDS)

    yield fill
    for name in made:
        topics.delete(name)


def test_a_topic_is_read(page: Page, filled: Callable[[str], None], capsys: pytest.CaptureFixture[str]):
    filled("orders")
    page.run("spark.md")
    shown = capsys.readouterr().out
    assert all(f"v{number}" in shown for number in range(RECORDS))


def test_files_are_read(page: Page, filled: Callable[[str], None], topics: Topics, capsys: pytest.CaptureFixture[str]):
    filled("orders")
    topics.client.call(group_offsets.commit, "docs-readers", {TopicPartition("orders", 0): 4})
    found = page.run("spark-files.md")
    assert found["orders"].count() == RECORDS
    mine = found["commits"].where("group = 'docs-readers'").select("topic", "partition", "offset").collect()
    assert [tuple(row) for row in mine] == [("orders", 0, 4)]
    assert "docs-readers" in capsys.readouterr().out


def test_a_share_group_is_read(page: Page, filled: Callable[[str], None], broker: Broker, spark: Any, tmp_path: Path):
    filled("jobs")
    ShareGroup(broker.bootstrap_servers, "workers")
    page.run("spark-share.md")
    assert sorted(row["offset"] for row in spark.read.parquet(str(tmp_path / "jobs")).collect()) == [*range(RECORDS)]


def test_a_stream_is_written(page: Page, topics: Topics, broker: Broker, spark: Any, tmp_path: Path):
    topics.create("orders")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "orders.json").write_text('{"id": 1, "what": "tea"}\n{"id": 2, "what": "jam"}\n')
    page.run("spark-sink.md", orders=spark.readStream.schema("id bigint, what string").json(str(tmp_path / "in")))
    written = Queries(spark, broker.bootstrap_servers, tmp_path).rows("orders", isolationLevel="read_committed")
    topics.delete("orders")
    assert sorted(row[:2] for row in written) == [
        (b"1", b'{"id":1,"what":"tea"}'),
        (b"2", b'{"id":2,"what":"jam"}'),
    ]
