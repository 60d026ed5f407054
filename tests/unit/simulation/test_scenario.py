"""The scenario runner, with a toy for a core."""

from __future__ import annotations

from textwrap import dedent

import pytest

from simulation.scenario import ScenarioError, run_text
from tests.unit.simulation.toy import TOY, ToyCore


def run(text: str) -> str:
    seen, faults = run_text(dedent(text).lstrip("\n"), TOY)
    assert faults == []
    return seen


def output(text: str) -> list[str]:
    """What the last block brought."""
    return run(text).rstrip("\n").rpartition("----\n")[2].split("\n")


def test_a_record_and_an_answer() -> None:
    assert output("send c1 Heartbeat {group_id: g, member_id: m}") == [
        "record OffsetCommit group=g topic=beats partition=0: offset=1 metadata=m commit_timestamp=T+0",
        "c1 <- Heartbeat ok",
    ]


def test_the_expected_output_is_replaced_and_comments_stay() -> None:
    text = """\
        # A comment of its own.

        # And one before a command.
        send c1 Heartbeat {group_id: g}
        ----
        something else

        advance 5
        ----
        """
    assert run(text) == dedent("""\
        # A comment of its own.

        # And one before a command.
        send c1 Heartbeat {group_id: g}
        ----
        record OffsetCommit group=g topic=beats partition=0: offset=1 commit_timestamp=T+0
        c1 <- Heartbeat ok

        advance 5
        ----
        ok
        """)


def test_running_twice_gives_the_same() -> None:
    once = run("send c1 SyncGroup {group_id: g}\nadvance 1000\n----\n")
    assert run(once) == once


def test_time_stops_at_deadlines() -> None:
    assert output("send c1 SyncGroup {group_id: g}\nadvance 999") == ["ok"]
    assert output("send c1 SyncGroup {group_id: g}\nadvance 1000") == ["c1 <- SyncGroup protocol_name=#1"]


def test_a_restart_keeps_what_was_written_and_forgets_who_waits() -> None:
    assert (
        output("""
        send c1 Heartbeat {group_id: g}
        send c2 SyncGroup {group_id: g}
        restart
        advance 5000
        state
        """)[-1]
        == "state g 1"
    )


def test_who_waits_is_told_when_leadership_moves() -> None:
    assert output("""
        send c2 SyncGroup {group_id: g}
        unload
        send c1 Heartbeat {group_id: g}
        load
        send c1 Heartbeat {group_id: g}
        """) == [
        "c2 <- SyncGroup refused=NOT_COORDINATOR",
        "c1 <- Heartbeat refused=NOT_COORDINATOR",
        "record OffsetCommit group=g topic=beats partition=0: offset=1 commit_timestamp=T+0",
        "c1 <- Heartbeat ok",
    ]


def test_answers_wait_for_the_high_watermark() -> None:
    held = "hold\nsend c1 Heartbeat {group_id: g}\n----\n\n"
    assert len(output(held)) == 1
    assert output(held + "release") == ["c1 <- Heartbeat ok"]
    assert output(held + "advance 5000") == ["c1 <- Heartbeat refused=COORDINATOR_NOT_AVAILABLE"]


def test_a_refused_write_loses_the_shard_and_nothing_else() -> None:
    assert output("fail-write NOT_ENOUGH_REPLICAS\nsend c1 Heartbeat {group_id: g}\nstate") == [
        "lost: NOT_ENOUGH_REPLICAS",
        "c1 <- Heartbeat refused=NOT_COORDINATOR",
    ]


def test_rights_can_be_denied_and_given_back() -> None:
    denied = "deny READ GROUP g\nsend c1 Heartbeat {group_id: g}"
    assert output(denied) == ["c1 <- Heartbeat refused=GROUP_AUTHORIZATION_FAILED"]
    assert output(f"{denied}\nallow READ GROUP g\nsend c1 Heartbeat {{group_id: g}}")[-1] == "c1 <- Heartbeat ok"


def test_defaults_and_macros_save_words() -> None:
    assert (
        output("""
        defaults Heartbeat {group_id: g, member_id: somebody}
        define beat send $1 Heartbeat {member_id: $2}
        beat c1 me
        """)[0]
        .split(": ")[1]
        .split()[1]
        == "metadata=me"
    )


def test_a_change_outside_replay_breaks_the_law() -> None:
    seen, faults = run_text("send c1 SyncGroup {group_id: g}\n----\n", TOY, lambda place: ToyCore(changes_early=True))
    assert faults == [
        "replayed log: 'g': live 7, there 'has none'",
        "replayed compacted log: 'g': live 7, there 'has none'",
    ]
    assert "BROKEN LAW" in seen


def test_a_failing_core_is_a_fault() -> None:
    seen, faults = run_text("send c1 Heartbeat {group_id: broken}\n----\n", TOY)
    assert "FAILED handle: RuntimeError('a mistake')" in seen
    assert faults == ["handle: RuntimeError('a mistake')"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sned c1 Heartbeat", "no command 'sned'"),
        ("send c1 OffsetCommit", "no handler for OffsetCommit"),
        ("send c1 Heartbeat {groupid: g, colour: red}", "no field 'colour'"),
        ("send c1 Heartbeat {group_id: g", "is missing"),
        ("send c1 Heartbeat {member_id: $c1}", "never told a member_id"),
    ],
)
def test_mistakes_in_a_scenario_are_explained(text: str, complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        run_text(text + "\n----\n", TOY)
