"""What is selected a sample."""

from ottla.health.facts import Gone, Group, Lag, Partition, Topic
from ottla.observe.changes import ChangeFilter, Presence
from ottla.observe.probe_result import ProbeResult, probe_error, probe_result


def group(epoch: int = 1, name: str = "billing") -> ProbeResult:
    return probe_result(name, Group(group=name, type="consumer", state="Stable", group_epoch=epoch))


def topic(*isr: int) -> ProbeResult:
    return probe_result(
        "orders", Topic(topic="orders", partitions=(Partition(partition=0, leader=1, replicas=(1, 2), isr=isr),))
    )


def written(changes: ChangeFilter, at_ms: int, seen: ProbeResult) -> str | None:
    selected = changes.select(at_ms, [seen])
    return ("heartbeat" if selected[0].is_heartbeat else "new") if selected else None


def test_a_group_is_written_when_it_changes_or_after_a_minute():
    changes = ChangeFilter()
    story = [(0, 1), (1000, 1), (59_999, 1), (60_000, 1), (61_000, 1), (62_000, 2), (63_000, 2), (64_000, 1)]
    told = [written(changes, at_ms, group(epoch)) for at_ms, epoch in story]
    assert told == ["new", None, None, "heartbeat", None, "new", None, "new"]


def test_groups_do_not_stand_for_each_other():
    changes = ChangeFilter()
    assert written(changes, 0, group(name="a")) == "new"
    assert written(changes, 1, group(name="b")) == "new"
    assert written(changes, 2, group(name="a")) is None


def test_an_error_is_a_change_and_so_is_its_end():
    changes = ChangeFilter()
    denied = probe_error("group", "billing", "GROUP_AUTHORIZATION_FAILED")
    told = [written(changes, at_ms, seen) for at_ms, seen in enumerate([group(), denied, denied, group()])]
    assert told == ["new", "new", None, "new"]


def test_after_a_hole_everything_is_news():
    changes = ChangeFilter()
    written(changes, 0, group())
    written(changes, 0, topic(1, 2))
    changes.forget("group")
    assert written(changes, 1, group()) == "new"
    assert written(changes, 1, topic(1, 2)) is None


def test_offsets_are_always_written():
    changes = ChangeFilter()
    lag = probe_result("billing:orders-0", Lag(group="billing", topic="orders", partition=0, committed=5))
    assert [written(changes, at_ms, lag) for at_ms in (0, 1, 2)] == ["new", "new", "new"]


def test_what_is_wrong_with_a_topic_is_repeated_and_that_it_is_over_is_told():
    changes = ChangeFilter()
    story = [topic(1, 2), topic(1, 2), topic(1), topic(1), topic(1, 2), topic(1, 2)]
    assert [written(changes, at_ms, seen) for at_ms, seen in enumerate(story)] == [
        "new", None, "new", "new", "new", None,
    ]  # fmt: skip


def test_what_was_not_seen_for_longest_is_forgotten_where_there_is_no_room():
    changes = ChangeFilter(room=2)
    for name in ("a", "b", "a", "c"):
        written(changes, 0, group(name=name))
    assert written(changes, 1, group(name="a")) is None
    assert written(changes, 1, group(name="b")) == "new"


# --- gone -------------------------------------------------------------------------------------------------------------


def gone(presence: Presence, at_ms: int, *names: str, is_complete: bool = True) -> list[str]:
    told = presence.take(at_ms, names, is_complete=is_complete)
    return [each.fact.name for each in told if isinstance(each.fact, Gone)]


def test_a_group_is_gone_after_it_was_missing_for_a_while():
    presence = Presence("group", absent_ms=5000)
    story = [
        gone(presence, 0, "a", "b"),
        gone(presence, 1000, "a"),
        gone(presence, 5999, "a"),
        gone(presence, 6000, "a"),
    ]
    assert story == [[], [], [], ["b"]]
    assert gone(presence, 20_000, "a") == []


def test_a_group_that_comes_back_is_not_gone():
    presence = Presence("group", absent_ms=5000)
    for at_ms, names in ((0, ["a"]), (1000, []), (4000, ["a"]), (8000, [])):
        assert gone(presence, at_ms, *names) == []
    assert gone(presence, 13_000) == ["a"]


def test_a_list_with_holes_tells_of_nothing_that_is_gone():
    presence = Presence("group", absent_ms=0)
    gone(presence, 0, "a", "b")
    assert gone(presence, 1000, "a", is_complete=False) == []
    assert gone(presence, 2000, "a") == ["b"]
