"""Three nodes of an earlier build of ottla become nodes of this one under load, and metadata.version is raised.

The earlier builds know no metadata.version beyond 29 (`earlier_node`): the source of this one, and that of an earlier
commit, if the history of the repository is there. One node goes back to the earlier build for a while. No client
notices; nothing that was acknowledged is lost or there twice.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from ottla.core.metadata.features import METADATA_VERSION_MAX, METADATA_VERSION_MIN
from tests.interop import process
from tests.interop.apache import dump_log, tool
from tests.interop.node.brokers import OTTLA, Node
from tests.interop.programs import compiled
from tests.interop.quorum.cluster_load import COORDINATORS, SETTINGS, TOPICS, ClusterLoad
from tests.interop.quorum.earlier_node import HIGHEST
from tests.interop.quorum.members import CLUSTER_ID, METADATA_DIR, WAIT_S, Quorum
from tests.interop.quorum.replacing import replace_nodes
from tests.interop.serving import OttlaServe

NODES = (1, 2, 3)
EARLIER = "earlier"
REPOSITORY = Path(__file__).parents[3]
EARLIER_COMMIT = "c574004c2a75"
"""From before nodes of Apache Kafka could be in the same cluster, and before nodes ran on uvloop."""
FEATURES = "org.apache.kafka.tools.FeatureCommand"
RAISE = f"metadata.version={METADATA_VERSION_MAX}"


class UpgradedQuorum(Quorum):
    """Nodes of this build, and of an earlier one whose packages are in `source`."""

    def __init__(self, directory: Path, source: Path) -> None:
        self._source = source
        super().__init__(directory, voters=dict.fromkeys(NODES, EARLIER), **SETTINGS)

    def _node(self, kind: str, directory: Path, settings: Mapping[str, object]) -> Node:
        if kind != EARLIER:
            return super()._node(kind, directory, settings)
        prefix = ("env", f"PYTHONPATH={self._source}{os.pathsep}{REPOSITORY}")
        program = "tests.interop.quorum.earlier_node"
        return OttlaServe(directory, prefix=prefix, program=program, cluster_id=CLUSTER_ID, **settings)


def source_of(commit: str, directory: Path) -> Path:
    """The packages of an earlier commit. A checkout without history, or an archive, cannot give them."""
    git = ["git", "-C", str(REPOSITORY), "archive", commit, "src"]
    try:
        archive = subprocess.run(git, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"needs the history of the repository, with commit {commit}")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(directory, filter="data")
    return directory / "src"


@pytest.fixture(params=["this source", "earlier commit"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    is_own = request.param == "this source"
    return REPOSITORY / "src" if is_own else source_of(EARLIER_COMMIT, tmp_path / "earlier")


def test_nodes_are_upgraded_under_load(source: Path, tmp_path: Path) -> None:
    compiled("4.3.1")  # which takes a while
    with UpgradedQuorum(tmp_path / "quorum", source) as quorum:
        with ClusterLoad(quorum.bootstrap_servers, tmp_path / "load", replicas=3) as load:
            load.wait_for_progress()
            replace = partial(replace_nodes, quorum, tmp_path / "operator")
            last = quorum.leader
            first, second = (number for number in NODES if number != last)
            replace(OTTLA, first, second)
            load.wait_for_progress()
            check_raise_is_refused(quorum, last)
            replace(EARLIER, second)
            load.wait_for_progress()
            replace(OTTLA, second, last)
            load.wait_for_progress()
            raise_level(quorum)
            load.wait_for_progress()
            check_earlier_node_is_refused(quorum, NODES[0])
            load.wait_for_progress()
            load.finish()
        quorum.check_equal_logs(*TOPICS, *COORDINATORS)
        quorum.check_health()
        quorum.end("stopped")
        check_files(quorum)


def check_raise_is_refused(quorum: Quorum, earlier: int) -> None:
    """The level waits for the last node."""
    words = ("quorum", "features", "upgrade", RAISE, "--yes", "--bootstrap", quorum.bootstrap_servers)
    said = process.run([sys.executable, "-m", "ottla", *words], timeout_s=WAIT_S, check=False)
    assert f"{earlier} only supports versions {METADATA_VERSION_MIN}-{HIGHEST}" in said


def raise_level(quorum: Quorum) -> None:
    where = ("--bootstrap-server", quorum.bootstrap_servers)
    said = tool(FEATURES, *where, "upgrade", "--feature", RAISE, timeout_s=WAIT_S)
    assert f"metadata.version was upgraded to {METADATA_VERSION_MAX}" in said


def check_earlier_node_is_refused(quorum: UpgradedQuorum, number: int) -> None:
    """It says why, ends, and leaves its directory as it was: this build goes on there."""
    quorum.nodes[number].stop(timeout_s=WAIT_S)
    quorum.replace(number, EARLIER)
    refused = quorum.nodes[number]
    assert isinstance(refused, OttlaServe)
    refused.launch()
    assert refused.wait_for_end(timeout_s=WAIT_S) != 0
    why = f"metadata.version is at level {METADATA_VERSION_MAX}; this software runs with {METADATA_VERSION_MIN} to"
    assert f"{why} {HIGHEST}" in refused.log
    quorum.replace(number, OTTLA)
    quorum.start(number)


def check_files(quorum: Quorum) -> None:
    """Ours can start on all directories, and Apache Kafka reads which records the level has changed."""
    directories = [str(quorum.nodes[number].data_dir) for number in NODES]
    check = [sys.executable, "-m", "ottla", "storage", "check", "--deep", *directories]
    assert "3 directories: Apache Kafka 4.3 and ottla can start on them" in process.run(check, timeout_s=WAIT_S)
    files = sorted((quorum.nodes[1].data_dir / METADATA_DIR).glob("*.log"))
    dumped = dump_log(files, "--cluster-metadata-decoder", timeout_s=WAIT_S)
    before, level, after = dumped.partition(f'"name":"metadata.version","featureLevel":{METADATA_VERSION_MAX}')
    assert level, dumped
    assert '"REGISTER_BROKER_RECORD","version":3' in before
    assert '"REGISTER_BROKER_RECORD","version":4' in after
