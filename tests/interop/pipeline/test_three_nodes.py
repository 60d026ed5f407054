"""The pipeline, the observer and `ottla health` on a quorum of three, whose leader is killed while they watch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla import testing
from ottla.testing import Cluster
from tests.interop import process
from tests.interop.pipeline.conftest import FILES, NETWORK, Output, ottla, run_pipeline
from tests.interop.spark.sessions import plain_environment

NODES = {1, 2, 3}
CALM_S, OBSERVE_S = 5, 30


class Seen(NamedTuple):
    cluster: Cluster
    samples: Path
    killed: int
    """The node that led first, and is back."""

    def source(self, place: str) -> list[str]:
        if place == NETWORK:
            return ["--bootstrap", self.cluster.bootstrap_servers]
        return [word for node in self.cluster for word in ("--from-log", str(node.data_dir))]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    samples = tmp_path_factory.mktemp("samples")
    with testing.cluster() as cluster:
        words = ["observe", "--bootstrap", cluster.bootstrap_servers, "--to", str(samples)]
        command = [sys.executable, "-m", "ottla", *words, "--for", f"{OBSERVE_S}s", "--every", "1s"]
        with subprocess.Popen(process.tied(command), stderr=subprocess.PIPE, env=plain_environment()) as observer:
            with pytest.raises(subprocess.TimeoutExpired):
                observer.wait(CALM_S)
            leader = cluster.quorum_leader()
            leader.kill()
            cluster.quorum()
            leader.start()
            _, said = observer.communicate(timeout=10 * OBSERVE_S)
            assert observer.returncode == 0, said.decode()
        yield Seen(cluster, samples, leader.node_id)


@pytest.fixture(scope="module", params=[FILES, NETWORK])
def output(request: pytest.FixtureRequest, seen: Seen, tmp_path_factory: pytest.TempPathFactory) -> Output:
    out = tmp_path_factory.mktemp("out")
    return run_pipeline(out, *seen.source(request.param), "--observations", str(seen.samples))


def test_the_table_of_the_quorum_has_all_voters_and_the_election(seen: Seen, output: Output):
    rows = output.rows("quorum_lag")
    now = seen.cluster.quorum()
    assert {row["replica"] for row in rows} == NODES
    newest = max(rows, key=lambda row: row["window_start"])
    assert (newest["leader"], newest["leader_epoch"]) == (now.leader_id, now.leader_epoch)
    assert newest["leader"] != seen.killed
    assert sum(row["elections"] or 0 for row in rows if row["replica"] == now.leader_id) >= 1
    lags = {row["replica"]: row["lag_offsets_max"] for row in rows if row["window_start"] == newest["window_start"]}
    assert lags.keys() == NODES
    assert None not in lags.values()


def test_the_observer_and_health_tell_of_the_same_election(seen: Seen):
    done = ottla("health", "--from", str(seen.samples), "--json")
    assert done.returncode == 0, done.stderr
    found = {each["rule"]: each for each in json.loads(done.stdout)["rows"]}
    assert "quorum-leader-changed" in found, sorted(found)
