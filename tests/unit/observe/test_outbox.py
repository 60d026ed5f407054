"""The queue of samples."""

from ottla.health.facts import Quorum
from ottla.health.samples import Sample, fact_in
from ottla.observe.changes import ToWrite
from ottla.observe.outbox import Outbox, Stamp
from ottla.observe.probe_result import probe_error, probe_result


def samples(count: int, stamp: Stamp | None = None) -> list[Sample]:
    stamp = stamp or Stamp("run")
    seen = ToWrite(probe_error("quorum", "", "UNREACHABLE"))
    return [stamp.sample(seen, at_ms=number, cluster="c") for number in range(count)]


def seqs(some: list[Sample]) -> list[int]:
    return [each.seq for each in some]


def test_samples_are_numbered_and_say_what_was_seen():
    stamp = Stamp("run-1")
    fact = Quorum(leader=1, leader_epoch=4)
    stamp.sample(ToWrite(probe_result("", fact)), at_ms=5, cluster="c")
    sample = stamp.sample(ToWrite(probe_result("", fact), is_heartbeat=True), at_ms=6, cluster="c", took_ms=1.26)
    assert (sample.kind, sample.ts, sample.observer, sample.seq, sample.took_ms) == ("quorum", 6, "run-1", 1, 1.3)
    assert sample.heartbeat
    assert fact_in(sample) == fact


def test_what_was_put_first_is_taken_first():
    outbox = Outbox()
    for each in samples(5):
        outbox.put(each)
    assert seqs(outbox.take(2)) == [0, 1]
    assert seqs(outbox.take(9)) == [2, 3, 4]
    assert outbox.take(1) == []


def test_the_oldest_go_and_the_next_one_tells_how_many():
    outbox = Outbox(room=3)
    for each in samples(8):
        outbox.put(each)
    taken = outbox.take(2)
    assert (seqs(taken), [each.dropped for each in taken]) == ([5, 6], [5, 0])
    assert outbox.dropped == 0
    assert outbox.take(1)[0].dropped == 0


def test_what_could_not_be_written_comes_first_again():
    outbox = Outbox()
    for each in samples(4):
        outbox.put(each)
    outbox.put_back(outbox.take(2))
    assert seqs(outbox.take(9)) == [0, 1, 2, 3]


def test_what_is_put_back_into_a_full_queue_is_dropped_and_nothing_that_was_told_is_forgotten():
    outbox = Outbox(room=2)
    stream = samples(6)
    for each in stream[:3]:
        outbox.put(each)
    taken = outbox.take(2)  # tells that one was dropped
    assert taken[0].dropped == 1
    for each in stream[3:5]:
        outbox.put(each)
    outbox.put_back(taken)
    left = outbox.take(9)
    assert (seqs(left), left[0].dropped) == ([3, 4], 3)
