"""Ours beside the directories that Apache Kafka's storage tool formats, in tests/golden/storage/formatted."""

from pathlib import Path

import pytest

from ottla.core.metadata import features
from ottla.core.metadata.fault import MetadataFault
from ottla.core.metadata.format import (
    BOOTSTRAP_CHECKPOINT,
    VOTERS_CHECKPOINT,
    format_files,
    read_bootstrap,
    write_bootstrap,
)
from ottla.core.metadata.snapshot import read_snapshot
from ottla.wire import uuid_bytes
from ottla.wire.batch import read_header
from ottla.wire.properties import MetaProperties, read_meta_properties
from tests.unit.core.metadata.cluster import uuid
from tests.unit.core.metadata.formatted import GOLDEN, levels_of, standalone_voters, voters_of
from tests.unit.core.metadata.stamps import restamped, timeless

VARIANTS = sorted(path.name for path in GOLDEN.iterdir())
NOW_MS = 1_800_000_000_123


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_files_are_apaches(variant: str):
    directory = GOLDEN / variant
    meta = read_meta_properties((directory / "meta.properties").read_bytes())
    files = format_files(meta, levels_of(variant), NOW_MS, voters=voters_of(directory))
    apaches = {path.name: path.read_bytes() for path in directory.iterdir() if path.name != "format.json"}
    ours = {Path(name).name: content for name, content in files.items()}
    assert ours.keys() == apaches.keys()
    assert ours[BOOTSTRAP_CHECKPOINT] == restamped(apaches[BOOTSTRAP_CHECKPOINT], NOW_MS)
    for name in ours.keys() - {"meta.properties"}:
        assert timeless(ours[name]) == timeless(apaches[name])
        assert len(ours[name]) == len(apaches[name])
    dates = [content.splitlines()[1] for content in (ours["meta.properties"], apaches["meta.properties"])]
    assert ours["meta.properties"] == apaches["meta.properties"].replace(dates[1], dates[0])
    assert dates[0] == b"#Fri Jan 15 08:00:00 UTC 2027"


def test_the_first_voters_of_one_node():
    directory = GOLDEN / "standalone"
    apaches = voters_of(directory)
    assert apaches is not None
    (voter,) = apaches.voters
    (endpoint,) = voter.endpoints
    ours = standalone_voters(voter.voter_id, voter.voter_directory_id, endpoint.name, endpoint.host, endpoint.port)
    assert ours == apaches


def test_the_file_that_makes_a_directory_formatted_comes_last():
    voters = standalone_voters(1, uuid(1), "CONTROLLER", "127.0.0.1", 9093)
    meta = MetaProperties("c", 1, uuid(1))
    assert list(format_files(meta, features.levels_for_format(), 0, voters=voters)) == [
        BOOTSTRAP_CHECKPOINT,
        VOTERS_CHECKPOINT,
        "meta.properties",
    ]
    assert list(format_files(meta, features.levels_for_format(), 0)) == [BOOTSTRAP_CHECKPOINT, "meta.properties"]


def test_the_snapshot_of_a_known_directory_byte_for_byte():
    # Written by Apache Kafka 4.3.1: voter 1 at 127.0.0.1:39093.
    apaches = bytes.fromhex(
        "00000000000000000000009a00000000022dec5ec7002000000002000001a1dce0dc36000001a1dce0dc36ffffffffffffffffffff"
        "ffffffff000000032a0000000800000003160000000001a1dce0dc2b00001e00000208000000050a000000010000820100000408000000"
        "066e000002000000017670420369114a9496ea02e7e8f056a0020b434f4e54524f4c4c45520a3132372e302e302e3198b5000000000100"
        "00000000000000000000030000003f0000000002886f857d002000000000000001a1dce0dc3f000001a1dce0dc3fffffffffffffffffff"
        "ffffffffff000000011a00000008000000040600000000"
    )
    directory_id = uuid_bytes("dnBCA2kRSpSW6gLn6PBWoA")
    voters = standalone_voters(1, directory_id, "CONTROLLER", "127.0.0.1", 39093)
    stamp = read_header(apaches).base_timestamp
    files = format_files(MetaProperties("c", 1, directory_id), features.levels_for_format(), stamp, voters=voters)
    assert timeless(files[VOTERS_CHECKPOINT]) == timeless(apaches)
    assert read_snapshot(apaches).voters == voters


def test_bootstrap_records_come_back():
    for variant in VARIANTS:
        records = read_bootstrap((GOLDEN / variant / BOOTSTRAP_CHECKPOINT).read_bytes())
        levels = {record.message.name: record.message.feature_level for record in records}
        wanted = {name: level for name, level in levels_of(variant).items() if level and name != "kraft.version"}
        assert levels == wanted


def test_a_bootstrap_file_without_metadata_version():
    with pytest.raises(MetadataFault, match=r"metadata\.version"):
        read_bootstrap(write_bootstrap([], 0))
