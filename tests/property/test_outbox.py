"""The queue of samples: whatever happens, what comes out is in order, and every sample is written or counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.health.samples import Sample
from ottla.observe.changes import ToWrite
from ottla.observe.outbox import Outbox, Stamp
from ottla.observe.probe_result import probe_error

SEEN = ToWrite(probe_error("quorum", "", "UNREACHABLE"))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(1, 6)),
        st.tuples(st.just("write"), st.integers(1, 6)),
        st.tuples(st.just("fail"), st.integers(1, 6)),
    ),
    max_size=60,
)


@given(room=st.integers(1, 8), steps=STEPS)
def test_every_sample_is_written_or_counted(room: int, steps: list[tuple[str, int]]) -> None:
    stamp, outbox = Stamp("run"), Outbox(room)
    written: list[Sample] = []
    put = 0
    for step, count in [*steps, ("put", 1), ("write", room + 1)]:
        if step == "put":
            for _ in range(count):
                outbox.put(stamp.sample(SEEN, at_ms=0, cluster="c"))
            put += count
        elif step == "write":
            written += outbox.take(count)
        else:
            outbox.put_back(outbox.take(count))
        assert len(outbox) <= room
    numbers = [each.seq for each in written]
    assert numbers == sorted(set(numbers))
    assert len(written) + sum(each.dropped for each in written) == put
    gaps = [after - before - 1 for before, after in zip([-1, *numbers], numbers, strict=False)]
    assert gaps == [each.dropped for each in written]
