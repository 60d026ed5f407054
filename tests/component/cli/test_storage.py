"""`ottla storage`: what formatting writes, and what checking finds."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.cli import run
from ottla.core.metadata.format import read_bootstrap
from ottla.wire.types import DescribeUserScramCredentialsRequest
from ottla.wire.types.cluster_metadata import UserScramCredentialRecord
from tests.component.broker.metadata_records import LOG
from tests.component.broker.raw_client import batch, running_node
from tests.unit.core.metadata.formatted import GOLDEN
from tests.unit.core.metadata.stamps import timeless

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """The directory of a node that was stopped, with one topic."""
    with running_node(tmp_path) as running:
        topic = running.client.topic(partitions=2)
        for partition in (0, 1):
            running.client.produce(topic, batch(b"a", b"b"), partition=partition)
        tmp_path.joinpath("name").write_text(topic.name)
    return tmp_path


def partition_of(used: Path, number: int = 0) -> Path:
    return used / f"{(used / 'name').read_text()}-{number}"


def check(directory: Path, *options: str) -> int:
    return run(["storage", "check", str(directory), *options])


# --- format -----------------------------------------------------------------------------------------------------------


def test_formatting_writes_what_a_standalone_node_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["storage", "format", "--data", str(tmp_path), "--cluster-id", CLUSTER, "--node-id", "3"]) == 0
    assert f"formatted for node 3 of cluster {CLUSTER}" in capsys.readouterr().out
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == [
        "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint",
        "bootstrap.checkpoint",
        "meta.properties",
    ]
    lines = (tmp_path / "meta.properties").read_text().splitlines()
    assert {"node.id=3", "version=1", f"cluster.id={CLUSTER}"} <= set(lines)
    with running_node(tmp_path, node_id=3) as running:
        assert running.node.cluster_id == CLUSTER


def test_features_can_be_chosen(tmp_path: Path):
    options = ["--feature", "metadata.version=4.1", "--feature", "group.version=0"]
    assert run(["storage", "format", "--data", str(tmp_path), *options]) == 0
    with running_node(tmp_path) as running:
        levels = running.node.image.features
        assert levels["metadata.version"] == 27
        assert "group.version" not in levels
        assert "share.version" not in levels, "not a default of 4.1"


def test_a_formatted_directory_is_not_formatted_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    command = ["storage", "format", "--data", str(tmp_path)]
    assert run(command) == 0
    before = (tmp_path / "meta.properties").read_bytes()
    assert run(command) == 2
    assert "is formatted already" in capsys.readouterr().err
    assert run([*command, "--ignore-formatted"]) == 0
    assert (tmp_path / "meta.properties").read_bytes() == before


def test_the_configuration_names_the_directories(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={one},{two}\nnode.id=4\ncontroller.quorum.bootstrap.servers=elsewhere:9093\n")
    assert run(["storage", "format", "--standalone", "--config", str(config)]) == 0
    assert (one / "__cluster_metadata-0").is_dir()
    assert not (two / "__cluster_metadata-0").exists()
    ids = {
        line
        for path in (one, two)
        for line in (path / "meta.properties").read_text().splitlines()
        if "directory" in line
    }
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--feature", "sare.version=1"], "there is no feature 'sare.version'; the nearest is share.version"),
        (["--feature", "share.version"], "--feature share.version has no level"),
        (["--feature", "share.version=x"], "a level is a number"),
        (["--feature", "metadata.version=9.9"], "is no metadata.version that ottla knows"),
        (["--cluster-id", "short"], "short is not a cluster id"),
        (["--config", "x"], "no directory given"),
    ],
)
def test_what_cannot_be_formatted(tmp_path: Path, options: list[str], problem: str, capsys: pytest.CaptureFixture[str]):
    assert run(["storage", "format", "--data", str(tmp_path), *options]) == 2
    assert problem in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_that_does_not_exist_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["storage", "format", "--config", str(tmp_path / "absent")]) == 2
    assert "cannot read the configuration" in capsys.readouterr().err


@pytest.mark.parametrize("variant", ["standalone", "static", "spare", "initial-controllers"])
def test_the_first_controllers_are_written_as_apache_kafka_writes_them(tmp_path: Path, variant: str):
    golden = GOLDEN / variant
    facts = json.loads((golden / "format.json").read_text())
    config = tmp_path / "server.properties"
    settings = facts["settings"] | {
        "log.dirs": str(tmp_path / "data"),
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "node.id": "1",
    }
    config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = ["storage", "format", "--config", str(config), "--cluster-id", facts["clusterId"], *facts["arguments"]]
    assert run(command) == 0
    ours = {path.name: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    apaches = {path.name: path.read_bytes() for path in golden.iterdir() if path.name != "format.json"}
    assert ours.keys() == apaches.keys()
    if variant == "initial-controllers":
        (checkpoint,) = (name for name in ours if name.startswith("0000"))
        assert timeless(ours[checkpoint]) == timeless(apaches[checkpoint])
        directory = next(line for line in apaches["meta.properties"].splitlines() if b"directory" in line)
        assert directory in ours["meta.properties"]


@pytest.mark.parametrize(
    ("options", "settings", "problem"),
    [
        (
            ["--standalone", "--no-initial-controllers"],
            "",
            "exclude each other",
        ),
        (["--standalone"], "controller.quorum.voters=1@h:1", "controller.quorum.voters fixes the controllers"),
        ([], "controller.quorum.bootstrap.servers=h:1", "names other controllers (h:1)"),
        (["--initial-controllers", f"2@h:1:{CLUSTER}"], "", "has no entry for this node, 1"),
        (["--initial-controllers", f"1@h:1:{CLUSTER},1@h:2:{CLUSTER}"], "", "have the same id"),
        (["--initial-controllers", f"1@h:1:{CLUSTER},2@h:2:{CLUSTER}"], "", "have the same directory"),
        (["--initial-controllers", "1@h:1:x"], "", "'1@h:1:x' has no directory id"),
        (["--initial-controllers", "1@h"], "", "'1@h' is not a controller; write ID@HOST:PORT:DIRECTORY_ID"),
        (["--no-initial-controllers"], "", "all nodes of a cluster need the same cluster id"),
    ],
)
def test_controllers_that_cannot_begin(
    tmp_path: Path, options: list[str], settings: str, problem: str, capsys: pytest.CaptureFixture[str]
):
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={tmp_path / 'data'}\n{settings}\n")
    assert run(["storage", "format", "--config", str(config), *options]) == 2
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


# --- info and check ---------------------------------------------------------------------------------------------------


def test_a_stopped_node_is_fit_for_a_start(used: Path, capsys: pytest.CaptureFixture[str]):
    assert check(used) == 0
    assert capsys.readouterr().out == f"{used}: Apache Kafka 4.3 and ottla can start on it\n"
    assert check(used, "--deep") == 0
    assert not (used / ".lock").exists()


def test_info_tells_whose_it_is(used: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["storage", "info", str(used)]) == 0
    out = capsys.readouterr().out
    assert "node: 1\n" in out
    assert "last stop: clean\n" in out
    assert "topics: 1 with 2 partitions\n" in out
    assert "kraft.version=1" in out


def test_a_link_to_nothing_is_not_part_of_a_directory(used: Path, capsys: pytest.CaptureFixture[str]):
    (partition_of(used) / f"{99:020}.log").symlink_to(used / "nowhere")
    assert run(["storage", "info", str(used)]) == 0
    assert "topics: 1 with 2 partitions\n" in capsys.readouterr().out
    assert check(used) == 0


def test_a_file_that_cannot_be_read_is_told(used: Path, capsys: pytest.CaptureFixture[str]):
    (partition_of(used) / f"{99:020}.log").mkdir()
    assert run(["storage", "info", str(used)]) == 2
    assert f"{99:020}.log cannot be read: Is a directory" in capsys.readouterr().err


def test_info_of_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["storage", "info", str(tmp_path)]) == 2
    assert "it is not formatted" in capsys.readouterr().err


def _tear(path: Path) -> None:
    log = path / f"{0:020}.log"
    log.write_bytes(log.read_bytes()[:-3])


def _flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def _not_clean(used: Path) -> None:
    (used / ".kafka_cleanshutdown").unlink()
    _tear(partition_of(used))


def _damage_first(used: Path) -> None:
    """Another batch behind the one that is there, which is damaged then."""
    (used / ".kafka_cleanshutdown").unlink()
    log = partition_of(used) / f"{0:020}.log"
    first = log.read_bytes()
    log.write_bytes(first + b"\0" * 7 + b"\2" + first[8:])
    _flip(log, len(first) - 1)


def _recover_damage(used: Path) -> None:
    _damage_first(used)
    with running_node(used):
        pass


PROBLEMS: list[tuple[Callable[[Path], object], str]] = [
    (lambda used: (used / "meta.properties").unlink(), "has no meta.properties: it is not formatted"),
    (lambda used: (used / "notes").mkdir(), "notes is not a partition directory"),
    (lambda used: (partition_of(used) / "partition.metadata").unlink(), "has no partition.metadata"),
    (lambda used: _tear(partition_of(used, 1)), "although the shutdown was clean; remove .kafka_cleanshutdown"),
    (lambda used: _flip(used / LOG, 300), "valid changes follow"),
    (lambda used: _flip(used / "bootstrap.checkpoint", 200), "bootstrap.checkpoint cannot be read"),
    (
        lambda used: (used / "__cluster_metadata-0/old.checkpoint").touch(),
        "old.checkpoint is not a valid snapshot name",
    ),
    (lambda used: (used / "__cluster_metadata-0/quorum-state").write_text("{"), "quorum-state is not JSON"),
    (
        lambda used: (used / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={CLUSTER}\n"),
        "has no directory.id",
    ),
    (
        lambda used: (used / "meta.properties").write_text(
            f"version=1\nnode.id=1\ncluster.id={CLUSTER}\ndirectory.id={CLUSTER}\n"
        ),
        "is not among the quorum's voters",
    ),
]


@pytest.mark.parametrize(("harm", "text"), PROBLEMS)
def test_problems_are_found(used: Path, harm: Callable[[Path], object], text: str, capsys: pytest.CaptureFixture[str]):
    harm(used)
    assert check(used) == 1
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.startswith("problem: ") and text in line]
    assert out.endswith("cannot be started; see the problems above\n")


NOTES: list[tuple[Callable[[Path], object], str]] = [
    (lambda used: (used / ".kafka_cleanshutdown").unlink(), "the last stop was not clean"),
    (_not_clean, "it is truncated there at the next start"),
    (
        _damage_first,
        "and 1 sound batches (2 records, offsets 2 to 3, 77 bytes) after it are kept in another file",
    ),
    (
        _recover_damage,
        "/00000000000000000000.log.cut keeps 154 bytes that recovery has truncated from ",
    ),
    (lambda used: partition_of(used).rename(used / "nobodys-0"), "nobodys-0 is unknown to the cluster"),
    (lambda used: partition_of(used).rename(used / "nobodys-0"), "has no directory: it is empty, or it was lost"),
    (
        lambda used: (used / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":99}'),
        "the clean-shutdown file has broker epoch 99",
    ),
    (
        lambda used: (used / LOG).write_bytes((used / LOG).read_bytes()[:-5]),
        "which was never acknowledged and will be truncated",
    ),
]


@pytest.mark.parametrize(("harm", "text"), NOTES)
def test_what_a_start_deals_with_is_noted(
    used: Path, harm: Callable[[Path], object], text: str, capsys: pytest.CaptureFixture[str]
):
    harm(used)
    assert check(used) == 0, capsys.readouterr().out
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ") and text in line]


def test_damage_in_older_segments_is_found_by_a_deep_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with running_node(tmp_path) as running:
        topic = running.client.topic(segment_bytes=1 << 20)
        for _ in range(3):
            running.client.produce(topic, batch(bytes(700_000)))
    logs = sorted((tmp_path / f"{topic.name}-0").glob("*.log"))
    assert len(logs) == 3
    _flip(logs[0], 5_000)
    assert check(tmp_path) == 0
    assert check(tmp_path, "--deep") == 1
    assert "is corrupt from byte 0 on" in capsys.readouterr().out


def test_a_directory_in_use_is_not_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with running_node(tmp_path):
        assert check(tmp_path) == 2
    assert "in use" in capsys.readouterr().err


class TestAddScram:
    def credentials(self, data: Path) -> list[Any]:
        records = read_bootstrap((data / "bootstrap.checkpoint").read_bytes())
        return [each.message for each in records if isinstance(each.message, UserScramCredentialRecord)]

    def test_users_are_there_from_the_start(self, tmp_path: Path):
        data = tmp_path / "data"
        users = (
            "SCRAM-SHA-256=[name=ann,password=secret]",
            'SCRAM-SHA-512=[name=bob,iterations=8192,salt="c2FsdA==",saltedpassword="cGFzcw=="]',
        )
        options = [word for user in users for word in ("--add-scram", user)]
        assert run(["storage", "format", "--data", str(data), *options]) == 0
        ann, bob = self.credentials(data)
        assert (ann.name, ann.mechanism, ann.iterations, len(ann.salt), len(ann.stored_key)) == ("ann", 1, 4096, 24, 32)
        assert (bob.name, bob.mechanism, bob.iterations, bob.salt, len(bob.stored_key)) == ("bob", 2, 8192, b"salt", 64)
        assert bob.server_key == hmac.digest(b"pass", b"Server Key", "sha512")

    @pytest.mark.parametrize(
        "user",
        [
            "SCRAM-SHA-1=[name=ann,password=secret]",
            "SCRAM-SHA-256=name=ann,password=secret",
            "SCRAM-SHA-256=[password=secret]",
            "SCRAM-SHA-256=[name=ann]",
            "SCRAM-SHA-256=[name=ann,password=secret,saltedpassword=c2FsdA==]",
            "SCRAM-SHA-256=[name=ann,saltedpassword=c2FsdA==]",
            "SCRAM-SHA-256=[name=ann,password=secret,iterations=100]",
            "SCRAM-SHA-256=[name=ann,password=secret,iterations=many]",
            "SCRAM-SHA-256=[name=ann,password=secret,salt=???]",
            "SCRAM-SHA-256=[name=ann,password=secret,salt=größe]",
            "SCRAM-SHA-256=[name=ann,password=secret,colour=red]",
            "SCRAM-SHA-256=[name=ann,name=bob,password=secret]",
        ],
    )
    def test_what_is_no_credential(self, tmp_path: Path, user: str, capsys: pytest.CaptureFixture[str]):
        data = tmp_path / "data"
        assert run(["storage", "format", "--data", str(data), "--add-scram", user]) != 0
        said = capsys.readouterr()
        assert "secret" not in said.out + said.err
        assert not data.exists()

    def test_not_before_metadata_versions_know_of_them(self, tmp_path: Path):
        old = ["--feature", "metadata.version=3.4-IV0", "--add-scram", "SCRAM-SHA-256=[name=ann,password=secret]"]
        assert run(["storage", "format", "--data", str(tmp_path / "data"), *old]) != 0

    def test_a_node_shows_them(self, tmp_path: Path):
        user = "SCRAM-SHA-256=[name=ann,password=secret,iterations=5000]"
        assert run(["storage", "format", "--data", str(tmp_path), "--add-scram", user]) == 0
        with running_node(tmp_path) as running:
            (shown,) = running.client.ask(DescribeUserScramCredentialsRequest(None), 0).results
        assert (shown.user, [(each.mechanism, each.iterations) for each in shown.credential_infos]) == (
            "ann",
            [(1, 5000)],
        )


def test_a_directory_of_a_quorum_with_several_voters_can_be_started(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    voters = "1@127.0.0.1:9093:dnBCA2kRSpSW6gLn6PBWoA,2@127.0.0.1:9095:5sJ9mbAnS4-xqf3tbrRPDA"
    options = ["--cluster-id", "b3R0bGEtaW50ZXJvcC0wMQ", "--initial-controllers", voters]
    assert run(["storage", "format", "--data", str(tmp_path), "--node-id", "1", *options]) == 0
    assert check(tmp_path) == 0, capsys.readouterr().out
