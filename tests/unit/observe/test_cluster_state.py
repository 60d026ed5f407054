"""The state: the newest of everything, what is gone, and what of it has changed."""

from __future__ import annotations

import msgspec

from ottla.health.evaluator import SampleEvaluator
from ottla.health.facts import Broker as Node
from ottla.health.facts import Cluster, Fact, Gone, Group, GroupMember, Lag, LogDir, Quorum, ShareOffsets, Topic
from ottla.health.samples import Sample
from ottla.observe.cluster_state import ClusterState

NOON_MS = 1_700_049_600_000


class Watched:
    """A state that is fed with facts, one a second."""

    def __init__(self) -> None:
        self.state = ClusterState(SampleEvaluator())
        self.now_ms = NOON_MS
        self._seq = 0

    def see(self, fact: Fact, error: str | None = None, kind: str = "") -> set[str]:
        return self.see_at(self.now_ms + 1_000, fact, error, kind)

    def see_at(self, at_ms: int, fact: Fact, error: str | None = None, kind: str = "") -> set[str]:
        self.now_ms = at_ms
        self._seq += 1
        sample = Sample(
            kind=kind or fact.kind,
            ts=self.now_ms,
            cluster="c",
            observer="o",
            seq=self._seq,
            error=error,
            body=None if error else msgspec.to_builtins(fact),
        )
        return self.state.take(sample)


def lag(group: str, partition: int, committed: int | None, end: int = 100) -> Lag:
    return Lag(group=group, topic="orders", partition=partition, committed=committed, high_watermark=end)


def test_the_newest_of_each_subject_is_kept():
    seen = Watched()
    assert seen.see(Group(group="billing", type="consumer", state="Stable", group_epoch=1)) == {
        "group",
        "group:billing",
    }
    seen.see(Group(group="billing", type="consumer", state="Empty", group_epoch=2))
    seen.see(Topic(topic="orders"))
    seen.see(Cluster(controller=1, brokers=(Node(id=1),)))
    seen.see(LogDir(node=1, path="/d", size=7))
    group = seen.state.group("billing")
    assert group is not None
    assert (group.fact.state, group.at_ms) == ("Empty", NOON_MS + 2_000)
    assert set(seen.state.topics) == {"orders"}
    assert seen.state.cluster is not None
    assert [each.fact.size for each in seen.state.log_dirs()] == [7]


def test_lag_is_summed_over_what_is_known():
    seen = Watched()
    for partition, committed in enumerate((90, 60, None)):
        seen.see_at(NOON_MS, lag("billing", partition, committed))
    assert [each.value for each in seen.state.history.points("lag:billing")][-1] == 50
    assert len(seen.state.lags("billing")) == 3
    seen.see(ShareOffsets(group="risk", topic="orders", partition=0, start=3, lag=12))
    assert [each.value for each in seen.state.history.points("lag:risk")] == [12]


def test_a_topic_that_is_gone_or_another_one_takes_the_offsets_in_it_along():
    seen = Watched()
    for again in (Gone(what="topic", name="orders"), Topic(topic="orders", id="second")):
        seen.see(Topic(topic="orders", id="first"))
        seen.see(lag("billing", 0, 90))
        seen.see(ShareOffsets(group="risk", topic="orders", partition=0, start=3, lag=12))
        seen.see(Lag(group="billing", topic="payments", partition=0, committed=1, high_watermark=2))
        seen.see(again)
        assert list(seen.state.lags("billing")) == [("payments", 0)]
        assert seen.state.share_offsets("risk") == {}


def test_an_offset_that_was_deleted_is_forgotten_with_the_next_round():
    seen = Watched()
    for rounds, partitions in enumerate([(0, 1, 2), (0, 2), (0, 2), (2,), (2,)]):
        for partition in partitions:
            seen.see_at(NOON_MS + 10_000 * rounds, lag("billing", partition, 90))
            seen.see_at(NOON_MS + 10_000 * rounds, ShareOffsets(group="risk", topic="orders", partition=partition))
    assert list(seen.state.lags("billing")) == [("orders", 2)]
    assert list(seen.state.share_offsets("risk")) == [("orders", 2)]
    assert [each.value for each in seen.state.history.points("lag:billing")][-1] == 10


def test_a_directory_that_a_node_no_longer_uses_is_forgotten_with_the_next_round():
    seen = Watched()
    for rounds, paths in enumerate([("/a", "/b"), ("/b", "/c"), ("/b", "/c")]):
        for path in paths:
            seen.see_at(NOON_MS + 60_000 * rounds, LogDir(node=1, path=path, size=7))
    assert sorted(each.fact.path for each in seen.state.log_dirs()) == ["/b", "/c"]


def test_what_is_gone_leaves_what_was_last_seen():
    seen = Watched()
    seen.see(Group(group="billing", type="share", state="Stable"))
    seen.see(lag("billing", 0, 90))
    assert seen.see(Gone(what="group", name="billing")) == {"group", "group:billing"}
    assert seen.state.group("billing") is None
    assert seen.state.lags("billing") == {}
    assert seen.state.history.points("lag:billing") == ()
    last = seen.state.gone.get(("group", "billing"))
    assert last is not None
    assert last.at_ms == NOON_MS + 3_000
    assert isinstance(last.fact, Group)
    seen.see(Gone(what="group", name="never seen"))


def test_epochs_and_elections_are_kept_when_they_change():
    seen = Watched()
    for epoch, members in ((1, 1), (1, 1), (2, 2), (2, 2), (3, 2)):
        people = tuple(GroupMember(member=str(number)) for number in range(members))
        seen.see(Group(group="billing", type="consumer", state="Stable", group_epoch=epoch, members=people))
    assert [(each.epoch, each.members) for each in seen.state.epochs("billing")] == [(1, 1), (2, 2), (3, 2)]
    for leader, epoch in ((1, 1), (1, 1), (2, 4)):
        seen.see(Quorum(leader=leader, leader_epoch=epoch, high_watermark=10))
    assert [(each.leader, each.epoch) for each in seen.state.elections] == [(2, 4)]


def test_what_cannot_be_seen_says_why_until_it_can():
    seen = Watched()
    assert "quorum" in seen.see(Quorum(leader=1, leader_epoch=1), error="CLUSTER_AUTHORIZATION_FAILED")
    assert seen.state.errors["quorum"] == (NOON_MS + 1_000, "CLUSTER_AUTHORIZATION_FAILED")
    seen.see(Quorum(leader=1, leader_epoch=1))
    assert seen.state.errors == {}


def test_findings_open_with_facts_and_with_time():
    seen = Watched()
    down = Cluster(controller=1, brokers=(Node(id=1, host="h", port=9092, fenced=False, reachable=False),))
    for _ in range(10):
        changed = seen.see(down)
    assert [each.rule for each in seen.state.findings] == ["node-unreachable"]
    assert "cluster" in changed
    assert "finding" in seen.state.advance(seen.now_ms + 60_000)
    assert "observer-stale" in {each.rule for each in seen.state.findings}
