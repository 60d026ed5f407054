"""The controllers: whether there is a leader and a majority, and whether all voters keep up."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.health.cluster_history import Election
from ottla.health.facts import Replica
from ottla.health.finding import NextStep, Severity, Subject, Tier
from ottla.health.phrases import clock, duration, href, nodes, number
from ottla.health.rule import Match, RuleContext, rule

QUORUM = Subject("quorum", "__cluster_metadata")
STATUS = "ottla quorum status"
STORM_MS = 600_000


def _step(text: str) -> NextStep:
    return NextStep(text, STATUS, href("quorum"))


@rule(
    "no-controller", Severity.CRITICAL, Tier.ADMIN, on=["quorum", "cluster", "failed"], scope=[],
    needs=["quorum|cluster"], condition="DescribeQuorum or DescribeCluster has reported no leader for 5 s",
    why="Topics, configs and leaders cannot change.",
    limits={"hold_s": 5},
)  # fmt: skip
def no_controller(ctx: RuleContext) -> Iterator[Match]:
    quorum, cluster = ctx.history.quorum, ctx.history.cluster.fact
    controller = cluster.controller if cluster else None
    if not quorum.leaderless and (controller is None or controller >= 0):
        return
    voters = [each.id for each in quorum.voters]
    yield Match(
        subject=QUORUM, hold_ms=ctx.ms("hold_s"),
        sentence=f"No active controller since {clock(ctx.began(QUORUM))}: metadata cannot change",
        past="There was no active controller: metadata could not change",
        evidence={"voters": voters},
        next=[_step(f"start the voters ({nodes(voters)})" if voters else "start the controllers")],
    )  # fmt: skip


def _short_of_voters(ctx: RuleContext, *, is_lost: bool) -> Iterator[Match]:
    healthy = ctx.history.quorum.healthy(ctx.ms("fetch_s"))
    voters = [each.id for each in ctx.history.quorum.voters]
    if healthy is None or not voters:
        return
    majority = len(voters) // 2 + 1
    wrong = len(healthy) < majority if is_lost else len(healthy) == majority and len(voters) > 1
    if not wrong:
        return
    count, one = f"{len(healthy)} of {len(voters)} voters", len(healthy) == 1
    down = sorted(set(voters) - set(healthy))
    yield Match(
        subject=QUORUM, hold_ms=ctx.ms("hold_s"),
        sentence=f"{count} {'is' if one else 'are'} healthy: "
        f"{'metadata cannot change' if is_lost else 'one more failure stops metadata changes'}",
        past=f"{count} {'was' if one else 'were'} healthy: "
        f"{'metadata could not change' if is_lost else 'one more failure would have stopped metadata changes'}",
        evidence={"healthy": healthy, "voters": voters, "majority": majority},
        next=[_step(f"start {nodes(down)}" if down else "add a voter")],
    )  # fmt: skip


@rule(
    "quorum-lost", Severity.CRITICAL, Tier.ADMIN, on=["quorum"], scope=[], needs=["quorum.fetch_times"],
    condition="for 10 s, fewer than a majority of the voters (the leader included) fetched within 5 s",
    why="Nothing can be committed to the metadata log.",
    limits={"hold_s": 10, "fetch_s": 5},
)  # fmt: skip
def quorum_lost(ctx: RuleContext) -> Iterator[Match]:
    return _short_of_voters(ctx, is_lost=True)


@rule(
    "no-majority-margin", Severity.WARNING, Tier.ADMIN, on=["quorum"], scope=[], needs=["quorum.fetch_times"],
    condition="for 10 s, no more than a majority of the voters (the leader included) fetched within 5 s",
    why="One more failure stops metadata changes.",
    limits={"hold_s": 10, "fetch_s": 5},
)  # fmt: skip
def no_majority_margin(ctx: RuleContext) -> Iterator[Match]:
    return _short_of_voters(ctx, is_lost=False)


@rule(
    "voter-lagging", Severity.WARNING, Tier.ADMIN, on=["quorum"], scope=[], needs=["quorum.fetch_times"],
    condition="a voter has not been caught up for more than 10 s (critical: 60 s) and lags by more than 100 records",
    why="It cannot take over, and may delay commits.",
    limits={"behind_s": 10, "critical_s": 60, "records": 100},
)  # fmt: skip
def voter_lagging(ctx: RuleContext) -> Iterator[Match]:
    leader, now_ms = ctx.history.quorum.leader, ctx.history.quorum.leader_now_ms
    if leader is None or now_ms is None:
        return
    for voter in ctx.history.quorum.voters:
        records = (leader.log_end or 0) - (voter.log_end or 0)
        behind_ms = _behind_ms(ctx, voter, now_ms)
        if voter.id == leader.id or records <= ctx.limits["records"] or behind_ms <= ctx.ms("behind_s"):
            continue
        behind = f"{number(records)} records and {duration(behind_ms)} behind"
        yield Match(
            subject=Subject("node", str(voter.id)),
            severity=Severity.CRITICAL if behind_ms > ctx.ms("critical_s") else Severity.WARNING,
            sentence=f"Voter {voter.id} is {behind}",
            past=f"Voter {voter.id} was {behind}",
            evidence={"records": records, "behind_ms": behind_ms},
            next=[_step(f"check the disk and the network of node {voter.id}")],
        )


def _behind_ms(ctx: RuleContext, voter: Replica, now_ms: int) -> int:
    """How long a voter is behind. One that has not fetched from this leader is behind since the leader was elected."""
    if voter.last_caught_up_ts is not None and voter.last_caught_up_ts >= 0:
        return now_ms - voter.last_caught_up_ts
    elections = ctx.history.quorum.elections
    return ctx.now_ms - elections[-1].at_ms if elections else ctx.ms("behind_s") + 1


@rule(
    "high-watermark-stuck", Severity.CRITICAL, Tier.SAMPLES, on=["quorum"], scope=[], needs=["quorum"],
    condition="the leader's log end offset is above the high watermark, which has not moved for 10 s",
    why="Metadata changes do not take effect.",
    limits={"hold_s": 10},
)  # fmt: skip
def high_watermark_stuck(ctx: RuleContext) -> Iterator[Match]:
    since = ctx.history.quorum.stuck_since
    if since is None or ctx.now_ms - since < ctx.ms("hold_s"):
        return
    leader = ctx.history.quorum.leader
    back = [each for each in ctx.history.quorum.holding_back() if leader is None or each != leader.id]
    fact = ctx.history.quorum.fact
    waiting = f"; waiting for {nodes(back)}" if back else ""
    yield Match(
        subject=QUORUM, since_ms=since,
        sentence=f"No metadata has been committed since {clock(since)}{waiting}",
        past=f"No metadata was committed for {duration(ctx.now_ms - since)}{waiting}",
        evidence={"high_watermark": fact.high_watermark if fact else None,
                  "log_end": leader.log_end if leader else None, "hold_back": back},
        next=[_step(f"check {nodes(back) if back else 'the voters'}: the high watermark advances as they fetch")],
    )  # fmt: skip


@rule(
    "quorum-leader-changed", Severity.NOTICE, Tier.SAMPLES, on=["quorum"], scope=[], needs=["quorum"], persists=True,
    condition="the quorum's leader epoch rose",
    why="An election is normal after a restart; this records when it was and who won.",
)  # fmt: skip
def quorum_leader_changed(ctx: RuleContext) -> Iterator[Match]:
    elections = ctx.history.quorum.elections
    if not elections:
        return
    last = elections[-1]
    how = f"(epoch {last.epoch}, {duration(last.gap_ms)} without a leader)"
    yield Match(
        subject=QUORUM, since_ms=last.at_ms, seen_ms=last.at_ms, until_ms=last.at_ms + 1,
        sentence=f"Node {last.leader} has led the quorum since {clock(last.at_ms)} {how}",
        past=f"Node {last.leader} became leader of the quorum at {clock(last.at_ms)} {how}",
        evidence={"leader": last.leader, "epoch": last.epoch, "rise": last.by, "gap_ms": last.gap_ms},
        next=[_step("nothing to do if a node was restarted; otherwise read its log")],
    )  # fmt: skip


@rule(
    "election-storm", Severity.WARNING, Tier.SAMPLES, on=["quorum"], scope=[], needs=["quorum"], persists=True,
    condition="the quorum's leader epoch rose by 3 or more in 10 min",
    why="Each election pauses metadata changes; many of them point to a faulty node or network.",
    limits={"elections": 3},
)  # fmt: skip
def election_storm(ctx: RuleContext) -> Iterator[Match]:
    recent = [each for each in ctx.history.quorum.elections if each.at_ms > ctx.now_ms - STORM_MS]
    count = sum(each.by for each in recent)
    if count < ctx.limits["elections"]:
        return
    leaders = sorted({each.leader for each in recent})
    yield Match(
        subject=QUORUM, until_ms=_calm_ms(recent, ctx.limits["elections"]),
        sentence=f"{count} elections in the last 10 min",
        past=f"{count} elections in 10 min",
        evidence={"elections": count, "leaders": leaders, "first_ms": recent[0].at_ms},
        next=[_step(f"check timeouts, clocks and CPU of {nodes(leaders)}")],
    )  # fmt: skip


def _calm_ms(recent: list[Election], wanted: float) -> int:
    """When enough elections will have left the window for the storm to be over."""
    total = 0
    for each in reversed(recent):
        total += each.by
        if total >= wanted:
            return each.at_ms + STORM_MS
    return recent[0].at_ms + STORM_MS


@rule(
    "even-voters", Severity.NOTICE, Tier.ADMIN, on=["quorum"], scope=[], needs=["quorum"],
    condition="the number of voters is even",
    why="An even number adds a voter, but no fault tolerance.",
)  # fmt: skip
def even_voters(ctx: RuleContext) -> Iterator[Match]:
    count = len(ctx.history.quorum.voters)
    if count == 0 or count % 2:
        return
    yield Match(
        subject=QUORUM, evidence={"voters": count},
        sentence=f"{count} voters tolerate no more failures than {count - 1}",
        past=f"{count} voters tolerated no more failures than {count - 1}",
        next=[NextStep("add a voter, or remove one", "ottla quorum voters", href("quorum"))],
    )  # fmt: skip


@rule(
    "single-voter", Severity.NOTICE, Tier.ADMIN, on=["quorum"], scope=[], needs=["quorum"],
    condition="there is one voter",
    why="Without it metadata cannot change; that is fine for tests.",
)  # fmt: skip
def single_voter(ctx: RuleContext) -> Iterator[Match]:
    voters = ctx.history.quorum.voters
    if len(voters) != 1:
        return
    yield Match(
        subject=QUORUM, evidence={"voters": 1},
        sentence=f"Node {voters[0].id} is the only voter: metadata cannot change without it",
        past=f"Node {voters[0].id} was the only voter: metadata could not change without it",
        next=[NextStep("add two voters if the cluster must survive the loss of a node; observers are listed with the "
                   "arguments of add-voter", "ottla quorum describe", href("quorum"))],
    )  # fmt: skip
