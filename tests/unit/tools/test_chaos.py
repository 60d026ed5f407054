"""What a chaos run says of who led what."""

from typing import Any

from tools.chaos.leadership import GROUPS, PARTITIONS, QUORUM, LeadershipWatch, Role
from tools.chaos.run import Report

KINDS = {1: "ottla", 2: "ottla", 3: "apache"}


class Nodes:
    """As much of a quorum as the watch needs to say what it found."""

    kinds = KINDS


def watch(said: list[str]) -> LeadershipWatch:
    nodes: Any = Nodes()
    return LeadershipWatch(nodes, topics=(), groups=(), transactional_ids=(), say=said.append)


def test_only_what_changes_is_said():
    said: list[str] = []
    looking = watch(said)
    looking._note({Role(QUORUM, QUORUM): 1, Role(PARTITIONS, "load-0"): 3})
    looking._note({Role(QUORUM, QUORUM): 1, Role(PARTITIONS, "load-0"): -1})
    looking._note({Role(QUORUM, QUORUM): 3, Role(PARTITIONS, "load-0"): 3})
    looking._note({Role(QUORUM, QUORUM): 3})
    assert said == [
        "leads: 1 (ottla): the quorum, 3 (apache): load-0",
        "leads: nobody: load-0",
        "leads: 3 (apache): load-0 the quorum",
    ]
    assert looking.seen[QUORUM] == {"ottla": 2, "apache": 2}


def test_kinds_that_never_led_are_named():
    led = {QUORUM: {"ottla": 9, "apache": 2}, PARTITIONS: {"ottla": 9, "apache": 9}, GROUPS: {"ottla": 9}}
    report = Report(KINDS, faults=4, led=led)
    assert report.never_led == ["apache: groups"]
    assert "groups by ottla 9 s" in str(report)
