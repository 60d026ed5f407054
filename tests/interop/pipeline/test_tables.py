"""The tables of the pipeline on both brokers, from files and over the network, against what the cluster itself says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.client import group_offsets
from ottla.client.cluster import describe_quorum
from ottla.client.share.offsets import describe_offsets
from ottla.spark.jobs.tables import TABLES
from tests.component.spark.delta_programs import delta_jars
from tests.interop.pipeline.conftest import (
    FILES,
    ON_STANDALONE,
    POISON,
    RECORDS,
    WORK,
    Cluster,
    Output,
    ottla,
    run_pipeline,
)
from tests.interop.spark.group_history import CLASSIC, SIMPLE
from tests.interop.spark.sessions import standalone_cluster


def test_lag_is_what_the_cluster_says(output: Output, cluster: Cluster):
    """The newest row of each partition of a group has its committed offset, and the lag up to the log's end."""
    rows = output.rows("consumer_lag")
    for group in (CLASSIC, SIMPLE):
        told = cluster.topics.client.call(group_offsets.committed, group)
        newest: dict[tuple[str, int], dict[str, Any]] = {}
        for row in (row for row in rows if row["group"] == group):
            newest[row["topic"], row["partition"]] = row
        assert {at: newest[at]["committed"] for at in map(tuple, told)} == {
            tuple(at): it.offset for at, it in told.items()
        }
        for at in map(tuple, told):
            assert newest[at]["lag_records"] == newest[at]["high_watermark"] - newest[at]["committed"]
            assert newest[at]["lag_seconds"] is None or newest[at]["lag_seconds"] >= 0
    assert cluster.share_group not in {row["group"] for row in rows}


def test_deliveries_are_those_that_were_made(output: Output, cluster: Cluster):
    rows = [
        row for row in output.rows("share_delivery") if row["group"] == cluster.share_group and row["partition"] >= 0
    ]
    sums = {name: sum(row[name] or 0 for row in rows) for name in ("accepted", "released", "rejected_or_archived")}
    released = len([offset for offset in range(RECORDS) if offset % 3 == 0 and offset not in POISON])
    # A record that is given up was released four times before.
    expected = {
        "accepted": RECORDS - len(POISON) - 1,
        "released": released + 4 * len(POISON),
        "rejected_or_archived": len(POISON) + 1,
    }
    assert sums == expected
    assert sorted({offset for row in rows for offset in row["poison"]}) == sorted(POISON)
    assert {row["topic"] for row in rows} == {WORK}
    ((_, told),) = cluster.topics.client.call(describe_offsets, cluster.share_group).items()
    assert (rows[-1]["start_offset"], rows[-1]["lag"] or 0) == (told.start_offset, told.lag)


def test_the_quorum_is_the_cluster_s(output: Output, cluster: Cluster):
    told = cluster.topics.client.call(describe_quorum)
    row = output.rows("quorum_lag")[-1]
    assert (row["leader"], row["leader_epoch"]) == (told.leader_id, told.leader_epoch)


def test_poison_is_found_and_named(output: Output, cluster: Cluster):
    found = [row for row in output.rows("findings") if row["rule"] == "poison-records"]
    assert [row["subject_name"] for row in found] == [cluster.share_group]
    records = json.loads(found[0]["evidence"])["records"]
    assert sorted(offset for _, _, offset in records) == sorted(POISON)


def test_the_run_says_what_it_read_and_wrote(output: Output):
    run = output.run
    assert [each["name"] for each in run["inputs"]] == ["records", "commits", "samples"]
    assert all(each["rows"] for each in run["inputs"])
    assert {each["name"] for each in run["tables"]} == set(TABLES)
    assert (output.path / "report.html").exists()
    assert "✓ read" in output.said
    assert "Exception" not in output.said


def test_a_second_run_over_what_did_not_change_changes_nothing(cluster: Cluster, pipeline: Callable[..., Output]):
    """The broker runs, but nobody speaks to it: what coordinators wrote stays as it is."""
    first = pipeline(*cluster.source(FILES))
    before = {name: first.rows(name) for name in TABLES}
    again = pipeline(*cluster.source(FILES))
    assert {name: again.rows(name) for name in TABLES} == before


@pytest.mark.parametrize("output", [FILES], indirect=True)
def test_a_run_on_a_standalone_cluster_gives_the_same_tables(cluster: Cluster, output: Output, tmp_path: Path):
    with standalone_cluster(tmp_path) as master:
        found = run_pipeline(tmp_path / "out", "--master", master, *ON_STANDALONE, *cluster.source(FILES))
    assert found.rows("share_delivery") == output.rows("share_delivery")
    assert found.rows("rebalances") == output.rows("rebalances")


def test_tables_of_delta_are_the_same_and_a_second_run_adds_no_version_with_changes(cluster: Cluster, tmp_path: Path):
    expected = run_pipeline(tmp_path / "parquet", *cluster.source(FILES))
    jars, log = delta_jars(), tmp_path / "delta" / "tables" / "share_delivery" / "_delta_log"
    versions = []
    for _ in range(2):
        run = run_pipeline(tmp_path / "delta", "--delta", "--conf", f"spark.jars={jars}", *cluster.source(FILES)).run
        rows = {each["name"]: each["rows"] for each in run["tables"]}
        assert rows == {each["name"]: each["rows"] for each in expected.run["tables"]}
        versions.append(set(log.glob("*.json")))
    first, both = versions
    actions = [json.loads(line) for version in both - first for line in version.read_text().splitlines()]
    assert first
    assert not [each for each in actions if "add" in each], "nothing differed, so nothing was written"


# --- what cannot be done ----------------------------------------------------------------------------------------------


def test_a_cluster_that_does_not_answer(tmp_path: Path):
    done = ottla("pipeline", "run", "--bootstrap", "127.0.0.1:1", "--out", str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("ottla: ")
    assert "127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr
