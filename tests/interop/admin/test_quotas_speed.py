"""A quota of 10,000 B/s makes 1 MB take as long as on Apache Kafka, for Java and for librdkafka, both ways.

All clients run at once, since they wait most of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.component.broker.raw_client import RawClient
from tests.interop.admin.speeds import COUNT, RATE, SIZE, WAYS, Target, fill, set_quotas
from tests.interop.jars import Report
from tests.interop.node.brokers import APACHE, OTTLA, Node, node_of

Seconds = dict[tuple[str, str], float]


def targets(kind: str, node: Node, directory: Path) -> list[tuple[str, str, Target]]:
    """For each way a client id and a topic of its own."""
    client = RawClient.at(node.bootstrap_servers)
    filled = fill(client).name
    prepared = [
        (kind, way, Target(node.bootstrap_servers, filled if "fetches" in way else client.topic().name, way, directory))
        for way in WAYS
    ]
    set_quotas(client, list(WAYS))
    client.close_all()
    return prepared


@pytest.fixture(scope="module")
def seconds(apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seconds]:
    """How long each takes on each broker, measured side by side."""
    with (
        node_of(OTTLA, tmp_path_factory.mktemp("ottla")) as ours,
        node_of(APACHE, tmp_path_factory.mktemp("apache")) as theirs,
    ):
        jobs = [
            job
            for kind, node in ((OTTLA, ours), (APACHE, theirs))
            for job in targets(kind, node, tmp_path_factory.mktemp(kind))
        ]
        with ThreadPoolExecutor(len(jobs)) as pool:
            futures = {(kind, way): pool.submit(WAYS[way], target) for kind, way, target in jobs}
            yield {key: future.result() for key, future in futures.items()}
        assert "Traceback" not in ours.log, ours.log


@pytest.mark.parametrize("way", WAYS)
def test_it_takes_as_long_as_on_apache_kafka(seconds: Seconds, way: str, report: Report) -> None:
    report(f"{way}: ottla {seconds[OTTLA, way]:.1f} s, Apache Kafka {seconds[APACHE, way]:.1f} s\n")
    assert seconds[OTTLA, way] == pytest.approx(seconds[APACHE, way], rel=0.15)
    assert seconds[OTTLA, way] > 0.7 * COUNT * SIZE / RATE
