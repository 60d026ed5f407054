"""The controllers: whether there is a leader and a majority, and whether all voters keep up."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.health.cluster_history import Election
from ottla.health.facts import Replica
from ottla.health.finding import NextStep, Severity, Subject, Tier
from ottla.health.phrases import clock, duration, href, nodes, number, plural
from ottla.health.rule import Match, RuleContext, rule

QUORUM = Subject("quorum", "__cluster_metadata")
STATUS = "ottla quorum status"
STORM_MS = 600_000


def _step(text: str) -> NextStep:
    return NextStep(text, STATUS, href("quorum"))


@rule(
    "no-controller", Severity.CRITICAL, Tier.ADMIN, on=["quorum", "cluster", "failed"], scope=[],
    needs=["quorum|cluster"], condition="DescribeQuorum or DescribeCluster knows of no leader for 5 s",
    why="No topic, config or leader can change.",
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
        evidence={"voters": voters},
        next=[_step(f"start the voters: {nodes(voters)}" if voters else "start the controllers")],
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
    what = "every metadata change stops now" if is_lost else "losing one more stops every metadata change"
    down = sorted(set(voters) - set(healthy))
    yield Match(
        subject=QUORUM, hold_ms=ctx.ms("hold_s"),
        sentence=f"{len(healthy)} of {len(voters)} voters are healthy: {what}",
        evidence={"healthy": healthy, "voters": voters, "majority": majority},
        next=[_step(f"start voter: {nodes(down)}" if down else "add a voter")],
    )  # fmt: skip


@rule(
    "quorum-lost", Severity.CRITICAL, Tier.ADMIN, on=["quorum"], scope=[], needs=["quorum.fetch_times"],
    condition="fewer voters than a majority fetched within the last 5 s (the leader counts), for 10 s",
    why="Nothing can be committed to the metadata log.",
    limits={"hold_s": 10, "fetch_s": 5},
)  # fmt: skip
def quorum_lost(ctx: RuleContext) -> Iterator[Match]:
    return _short_of_voters(ctx, is_lost=True)


@rule(
    "no-majority-margin", Severity.WARNING, Tier.ADMIN, on=["quorum"], scope=[], needs=["quorum.fetch_times"],
    condition="exactly a majority of several voters fetched within the last 5 s (the leader counts), for 10 s",
    why="One more failure and no metadata can change.",
    limits={"hold_s": 10, "fetch_s": 5},
)  # fmt: skip
def no_majority_margin(ctx: RuleContext) -> Iterator[Match]:
    return _short_of_voters(ctx, is_lost=False)


@rule(
    "voter-lagging", Severity.WARNING, Tier.ADMIN, on=["quorum"], scope=[], needs=["quorum.fetch_times"],
    condition="a voter was not caught up for more than 10 s (critical: 60 s) and lags by more than 100 records",
    why="It cannot take over, and may hold back what others commit.",
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
        yield Match(
            subject=Subject("node", str(voter.id)),
            severity=Severity.CRITICAL if behind_ms > ctx.ms("critical_s") else Severity.WARNING,
            sentence=f"Voter {voter.id} is {number(records)} records and {duration(behind_ms)} behind",
            evidence={"records": records, "behind_ms": behind_ms},
            next=[_step(f"look at the disk and the network of node {voter.id}")],
        )


def _behind_ms(ctx: RuleContext, voter: Replica, now_ms: int) -> int:
    """How long a voter is behind. One that has not fetched from this leader is behind since the leader was elected."""
    if voter.last_caught_up_ts is not None and voter.last_caught_up_ts >= 0:
        return now_ms - voter.last_caught_up_ts
    elections = ctx.history.quorum.elections
    return ctx.now_ms - elections[-1].at_ms if elections else ctx.ms("behind_s") + 1


@rule(
    "high-watermark-stuck", Severity.CRITICAL, Tier.SAMPLES, on=["quorum"], scope=[], needs=["quorum"],
    condition="the leader's log end is above the high watermark, which does not move for 10 s",
    why="What controllers decide does not take effect.",
    limits={"hold_s": 10},
)  # fmt: skip
def high_watermark_stuck(ctx: RuleContext) -> Iterator[Match]:
    since = ctx.history.quorum.stuck_since
    if since is None or ctx.now_ms - since < ctx.ms("hold_s"):
        return
    leader = ctx.history.quorum.leader
    back = [each for each in ctx.history.quorum.holding_back() if leader is None or each != leader.id]
    fact = ctx.history.quorum.fact
    yield Match(
        subject=QUORUM, since_ms=since,
        sentence=f"Nothing has been committed since {clock(since)}; {nodes(back)} "
        f"{'hold' if len(back) > 1 else 'holds'} it back",
        evidence={"high_watermark": fact.high_watermark if fact else None,
                  "log_end": leader.log_end if leader else None, "hold_back": back},
        next=[_step(f"look at {nodes(back)}: fetching moves the high watermark")],
    )  # fmt: skip


@rule(
    "quorum-leader-changed", Severity.NOTICE, Tier.SAMPLES, on=["quorum"], scope=[], needs=["quorum"], persists=True,
    condition="the leader epoch of the quorum rose",
    why="An election is normal after a restart; this says when it was, and who leads.",
)  # fmt: skip
def quorum_leader_changed(ctx: RuleContext) -> Iterator[Match]:
    elections = ctx.history.quorum.elections
    if not elections:
        return
    last = elections[-1]
    yield Match(
        subject=QUORUM, since_ms=last.at_ms, seen_ms=last.at_ms, until_ms=last.at_ms + 1,
        sentence=f"Node {last.leader} leads since {clock(last.at_ms)} "
        f"(epoch {last.epoch}, {duration(last.gap_ms)} without leader)",
        evidence={"leader": last.leader, "epoch": last.epoch, "rise": last.by, "gap_ms": last.gap_ms},
        next=[_step("nothing, if a node was restarted; else read its log")],
    )  # fmt: skip


@rule(
    "election-storm", Severity.WARNING, Tier.SAMPLES, on=["quorum"], scope=[], needs=["quorum"], persists=True,
    condition="the leader epoch of the quorum rose by 3 or more in 10 min",
    why="Each election stops metadata changes for a moment; many of them point to a sick node or network.",
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
        sentence=f"{count} elections in 10 min",
        evidence={"elections": count, "leaders": leaders, "first_ms": recent[0].at_ms},
        next=[_step(f"look at time-outs, clocks and CPU of {nodes(leaders)}")],
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
    why="An even number costs a voter and gains nothing.",
)  # fmt: skip
def even_voters(ctx: RuleContext) -> Iterator[Match]:
    count = len(ctx.history.quorum.voters)
    if count == 0 or count % 2:
        return
    yield Match(
        subject=QUORUM, evidence={"voters": count},
        sentence=f"{count} voters tolerate no more failures than {count - 1}",
        next=[NextStep("add a voter, or remove one", "ottla quorum voters", href("quorum"))],
    )  # fmt: skip


@rule(
    "single-voter", Severity.NOTICE, Tier.ADMIN, on=["quorum"], scope=[], needs=["quorum"],
    condition="there is one voter",
    why="Without it no metadata can change; that is fine for tests.",
)  # fmt: skip
def single_voter(ctx: RuleContext) -> Iterator[Match]:
    voters = ctx.history.quorum.voters
    if len(voters) != 1:
        return
    yield Match(
        subject=QUORUM, evidence={"voters": 1},
        sentence=f"{plural(1, 'voter')} (node {voters[0].id}) tolerates no failure at all",
        next=[NextStep("add two voters where the cluster must survive the loss of a node; controllers that follow are "
                   "listed with what add-voter asks for", "ottla quorum describe", href("quorum"))],
    )  # fmt: skip
