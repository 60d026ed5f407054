"""`ottla share` with a broker of ours in this process: what it prints, what it changes, and how it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import pytest

import ottla.testing
from ottla.cli import run
from ottla.cli.share.find import Found, Standing
from ottla.cli.share.watch import Rates
from ottla.client import Client, ShareConsumer, TopicPartition
from ottla.client.group_offsets import commit
from ottla.core.share.state.batches import Batch
from ottla.core.share.state.kept import Kept
from ottla.inflight.window import Range, Window, live_windows, stored_window
from ottla.testing.ports import PortReservation
from tests.component.share_scene import JOBS, begin_with, polled, worker

Capture = pytest.CaptureFixture[str]
JOBS_0 = TopicPartition("jobs", 0)
TIME_LIMIT_S = 60


class Scene(NamedTuple):
    """A broker with three groups: `workers` holds records, `idle` has no members, `readers` is a classic group."""

    bootstrap_servers: str
    member_id: str


@pytest.fixture(scope="module", params=["live", "stored"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """With and without a listener that lets others look inside."""
    with closing(PortReservation()) as kept:
        settings = {"ottla.inspect.listeners": f"http://127.0.0.1:{kept.port}"} if request.param == "live" else {}
        yield from _scene(settings)


def _scene(settings: dict[str, str]) -> Iterator[Scene]:
    with ottla.testing.broker(**settings) as broker:
        loop = asyncio.new_event_loop()
        client = loop.run_until_complete(Client(broker.bootstrap_servers).__aenter__())
        consumer = loop.run_until_complete(asyncio.wait_for(_prepare(client), TIME_LIMIT_S))
        yield Scene(broker.bootstrap_servers, consumer.member_id)
        loop.run_until_complete(client.close())
        loop.close()


async def _prepare(client: Client) -> ShareConsumer:
    await begin_with(client, "workers", "idle")
    await commit(client, "readers", {JOBS_0: 3})
    async with ShareConsumer(client, "idle", [JOBS]) as idle:
        await polled(idle)
    return await worker(client, "workers")


def said(scene: Scene, capsys: Capture, *words: str) -> list[str]:
    assert run(["share", *words, "--bootstrap-server", scene.bootstrap_servers]) == 0
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def told(scene: Scene, capsys: Capture, *words: str) -> Any:
    assert run(["share", *words, "--json", "--bootstrap-server", scene.bootstrap_servers]) == 0
    return json.loads(capsys.readouterr().out)


def refused(scene: Scene, capsys: Capture, *words: str) -> str:
    assert run(["share", *words, "--bootstrap-server", scene.bootstrap_servers]) in (1, 2)
    return capsys.readouterr().err


# --- commands ---------------------------------------------------------------------------------------------------------


def test_list(scene: Scene, capsys: Capture):
    heading, idle, workers = said(scene, capsys, "list")
    assert heading == "GROUP STATE MEMBERS EPOCH PARTITIONS LAG COORDINATOR"
    assert idle.split()[:3] == ["idle", "Empty", "0"]
    assert workers.split()[:3] == ["workers", "Stable", "1"]
    assert workers.split()[4:] == ["1", "6", "1"]
    listed = told(scene, capsys, "list")["rows"]
    assert [(each["group_id"], each["state"], each["lag"]) for each in listed] == [
        ("idle", "Empty", 10),
        ("workers", "Stable", 6),
    ]


def test_describe(scene: Scene, capsys: Capture):
    first, heading, member, offsets, row = said(scene, capsys, "describe", "workers")
    assert first.startswith("workers Stable coordinator 1 ")
    assert first.endswith("6 records left")
    assert heading == "MEMBER CLIENT HOST EPOCH PARTITIONS"
    assert member.split()[:3] == [scene.member_id, "ottla", "127.0.0.1"]
    assert member.endswith("jobs:0")
    assert offsets == "TOPIC PARTITION START END FINISHED LAG MEMBERS"
    assert row.split()[-2:] == ["6", "1"]
    described = told(scene, capsys, "describe")["rows"]
    assert [each["group_id"] for each in described] == ["idle", "workers"]
    assert described[1]["members"][0]["member_id"] == scene.member_id
    assert described[1]["partitions"][0]["member_ids"] == [scene.member_id]
    assert "no members" in " ".join(said(scene, capsys, "describe", "idle"))


def test_offsets(scene: Scene, capsys: Capture):
    first, heading, row = said(scene, capsys, "offsets", "workers")
    assert first == "workers Stable 6 records left"
    assert heading == "TOPIC PARTITION START END FINISHED LAG MEMBERS"
    assert row.split()[:2] + row.split()[3:4] == ["jobs", "0", "10"]
    (partition,) = told(scene, capsys, "offsets", "workers", "--topic", "jobs:0")["rows"]
    assert partition["end_offset"] == 10
    assert partition["end_offset"] - partition["start_offset"] - partition["finished"] == partition["lag"] == 6


def test_inflight(scene: Scene, capsys: Capture):
    (window,) = told(scene, capsys, "inflight", "workers")["rows"]
    found = {
        (each["first_offset"], each["last_offset"]): (each["state"], each["delivery_count"], each["member_id"])
        for each in window["ranges"]
    }
    if window["source"] == "records":
        assert found == {
            (2, 2): ("AVAILABLE", 1, None),
            (3, 3): ("ARCHIVED", 1, None),
            (4, 4): ("ACKNOWLEDGED", 1, None),
        } or {(0, 1), (2, 2), (3, 3), (4, 4)} == set(found), "accepted ones before the start may still be kept"
        shown = said(scene, capsys, "inflight", "workers")
        assert "as stored in records" in shown[0]
        assert "jobs 0 2 2 AVAILABLE or ACQUIRED 1 ? ?" in shown
        return
    assert window["max_record_locks"] == 2000
    assert found[2, 2] == ("ACQUIRED", 2, scene.member_id)
    assert found[5, 8] == ("ACQUIRED", 1, scene.member_id)
    assert found[3, 3][0] == "ARCHIVED"
    assert found[4, 4][0] == "ACKNOWLEDGED"
    assert all(0 < each["lock_timeout_ms"] <= 30_000 for each in window["ranges"] if each["state"] == "ACQUIRED")
    shown = said(scene, capsys, "inflight", "workers", "--topic", "jobs")
    assert any(line.startswith(f"jobs 0 5 8 ACQUIRED 1 {scene.member_id} (ottla) ") for line in shown)


def test_watch(scene: Scene, capsys: Capture):
    lines = said(scene, capsys, "watch", "workers", "--count", "2", "--interval", "0.01")
    assert sum(line == "workers Stable 1 members 6 left" for line in lines) == 2
    run(["share", "watch", "workers", "--count", "2", "--interval", "0.01", "--json", *at(scene)])
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["rows"][0]["finished_per_second"] is None
    assert second["rows"][0]["finished_per_second"] == 0.0
    assert second["rows"][0]["lag"] == 6


def at(scene: Scene) -> list[str]:
    return ["--bootstrap-server", scene.bootstrap_servers]


def test_reset(scene: Scene, capsys: Capture):
    planned = said(scene, capsys, "reset", "idle", "--all-topics", "--to-latest", "--dry-run")
    assert planned[1].split()[-2:] == ["10", "-"]
    done = told(scene, capsys, "reset", "idle", "--topic", "jobs", "--to-offset", "4", "--yes")
    assert done["executed"] is True
    assert told(scene, capsys, "offsets", "idle")["lag"] == 6
    told(scene, capsys, "reset", "idle", "--all-topics", "--to-earliest", "--yes")
    assert told(scene, capsys, "offsets", "idle")["lag"] == 10


def test_reset_makes_a_group_only_if_asked(scene: Scene, capsys: Capture):
    words = ("reset", "fresh", "--topic", "jobs", "--to-latest", "--yes")
    assert "group 'fresh' does not exist" in refused(scene, capsys, *words)
    told(scene, capsys, *words, "--create")
    assert told(scene, capsys, "offsets", "fresh")["lag"] == 0
    from ottla.client import groups

    async def delete() -> None:
        async with Client(scene.bootstrap_servers) as client:
            await groups.delete(client, "fresh")

    asyncio.run(delete())


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_names_that_are_not_there(scene: Scene, capsys: Capture):
    assert "group 'worker' does not exist\n  → did you mean workers?" in refused(scene, capsys, "describe", "worker")
    assert "group 'xyz' does not exist" in refused(scene, capsys, "inflight", "xyz")


def test_groups_of_other_kinds(scene: Scene, capsys: Capture):
    assert "is a classic group, not a share group" in refused(scene, capsys, "offsets", "readers")
    refusal = refused(scene, capsys, "reset", "readers", "--all-topics", "--to-latest", "--yes")
    assert "is a classic group, not a share group\n  → see 'ottla groups reset'" in refusal


def test_a_group_with_members_is_not_reset(scene: Scene, capsys: Capture):
    refusal = refused(scene, capsys, "reset", "workers", "--all-topics", "--to-latest", "--yes")
    assert "has 1 member (ottla)" in refusal


# --- pieces -----------------------------------------------------------------------------------------------------------


def test_a_window_from_records_has_holes():
    batches = (Batch(2, 3, 0, 2), Batch(7, 7, 2, 1))
    window = stored_window(JOBS_0, Kept(1, 2, 0, 1, 1, 0, 0, batches))
    assert window.ranges == (
        Range(1, 1, "unknown", None),
        Range(2, 3, "AVAILABLE", 2),
        Range(4, 6, "unknown", None),
        Range(7, 7, "ACKNOWLEDGED", 1),
    )
    assert window.offsets_in("ACQUIRED") is None
    assert window.offsets_in("ACKNOWLEDGED", "ARCHIVED") == 1


@pytest.mark.parametrize("kept", [None, Kept(0, 2, 0, -1, -1, 0, 0)])
def test_a_partition_that_has_not_begun(kept: Kept | None):
    assert stored_window(JOBS_0, kept) == Window(JOBS_0, None, (), is_live=False)


def test_a_live_window_counts_all_states():
    found = {"first_offset": 0, "last_offset": 4, "state": "ACQUIRED", "delivery_count": 1, "member_id": "m"}
    partition = {"topic": "jobs", "partition": 0, "start_offset": 0, "max_record_locks": 100}
    answer = {"partitions": [partition | {"ranges": [found | {"lock_timeout_ms": 5}]}]}
    (window,) = live_windows(answer)
    assert (window.offsets_in("ACQUIRED"), window.offsets_in("AVAILABLE"), window.locks_max) == (5, 0, 100)


def test_rates_need_two_looks():
    def standing(end: int, lag: int | None) -> Found:
        return Found(None, [Standing(JOBS_0, b"", 0, end, lag, 0, ())])  # type: ignore[arg-type]

    rates = Rates()
    assert rates.take(standing(10, 10), 1.0) == {}
    assert rates.take(standing(20, 5), 3.0) == {JOBS_0: 7.5}
    assert rates.take(standing(20, None), 4.0) == {}
