"""What is due when."""

from ottla.observe.schedule import Schedule


def test_each_kind_has_its_interval():
    schedule = Schedule(0, {"group": 1, "lag": 5})
    begun = []
    for now_ms in range(0, 10_001, 500):
        for kind in schedule.due(now_ms):
            begun.append((now_ms, kind))
            schedule.done(kind, now_ms)
    assert [at for at, kind in begun if kind == "group"] == list(range(0, 10_001, 1000))
    assert [at for at, kind in begun if kind == "lag"] == [0, 5000, 10_000]


def test_two_probes_of_a_kind_never_run_at_once():
    schedule = Schedule(0, {"group": 1})
    assert schedule.due(0) == ["group"]
    assert schedule.due(5000) == []
    schedule.done("group", 400)
    assert schedule.due(5000) == ["group"]


def test_what_was_missed_is_not_made_up_for_and_the_rhythm_stays():
    schedule = Schedule(0, {"group": 1})
    schedule.due(0)
    schedule.done("group", 0)
    assert schedule.due(3700) == ["group"]
    schedule.done("group", 3700)
    assert schedule.due(3999) == []
    assert schedule.next_ms() == 4000
    assert schedule.due(4000) == ["group"]


def test_after_a_long_probe_there_is_a_pause_as_long():
    schedule = Schedule(0, {"group": 1})
    schedule.due(0)
    schedule.done("group", 4_200)
    assert schedule.next_ms() == 8_400
    assert schedule.due(8_399) == []
    assert schedule.due(8_400) == ["group"]


def test_some_kinds_wait_until_others_were_probed_once():
    schedule = Schedule(0, {"group": 1, "lag": 5}, {"lag": frozenset({"group", "topic"})})
    assert schedule.due(0) == ["group"]
    assert schedule.next_ms() > 1 << 60  # nothing before the probe ends
    schedule.done("group", 10)
    assert schedule.due(10) == ["lag"]  # topics are not probed here


def test_all_were_probed():
    schedule = Schedule(0, {"group": 1, "lag": 5})
    for kind in schedule.due(0):
        assert not schedule.probed_all()
        schedule.done(kind, 1)
    assert schedule.probed_all()
