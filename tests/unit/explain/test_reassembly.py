"""Segments in any order become the stream, and what is missing is counted."""

from ottla.explain.reassembly import Direction, Duplex, Gap

STREAM = bytes(range(256)) * 4


def direction(first: int = 1_000, **bounds: int) -> Direction:
    made = Direction(**bounds)
    made.start(first - 1)
    return made


def feed(made: Direction, *places: tuple[int, int], first: int = 1_000) -> list[bytes | Gap]:
    """Segments of STREAM from one place to another."""
    return [piece for start, end in places for piece in made.segment((first + start) % (1 << 32), STREAM[start:end])]


def test_what_comes_in_order_is_handed_out_at_once():
    assert feed(direction(), (0, 10), (10, 30)) == [STREAM[:10], STREAM[10:30]]


def test_what_lies_ahead_is_held_until_the_hole_is_filled():
    made = direction()
    assert feed(made, (10, 20), (20, 30)) == []
    assert made.held_bytes == 20
    assert feed(made, (0, 10)) == [STREAM[:10], STREAM[10:20], STREAM[20:30]]
    assert made.held_bytes == 0


def test_what_was_seen_is_dropped():
    made = direction()
    feed(made, (0, 30))
    assert feed(made, (0, 30), (5, 12)) == []


def test_of_an_overlap_only_the_new_part_is_handed_out():
    made = direction()
    assert feed(made, (0, 10), (5, 15), (20, 30), (12, 25)) == [
        STREAM[:10],
        STREAM[10:15],
        STREAM[15:25],
        STREAM[25:30],
    ]


def test_bytes_that_came_first_stand_where_segments_differ():
    made = direction()
    assert b"".join(made.segment(1_005, b"AAAAA")) == b""
    assert b"".join(p for p in made.segment(1_000, b"bbbbbbb") if isinstance(p, bytes)) == b"bbbbbbbAAA"


def test_sequence_numbers_wrap():
    first = (1 << 32) - 5
    made = direction(first)
    assert feed(made, (8, 12), (0, 8), first=first) == [STREAM[:8], STREAM[8:12]]


def test_a_stream_without_its_syn_begins_at_its_first_segment():
    made = Direction()
    assert not made.has_started
    assert list(made.segment(77, b"abc")) == [b"abc"]
    assert list(made.segment(70, b"earlier")) == []


def test_a_hole_is_given_up_when_too_much_is_held_behind_it():
    made = direction(held_bytes_max=50)
    assert feed(made, (10, 40)) == []
    assert feed(made, (40, 70)) == [Gap(10), STREAM[10:40], STREAM[40:70]]
    assert made.held_bytes == 0


def test_at_the_end_everything_that_is_held_comes_out_with_its_gaps():
    made = direction()
    feed(made, (0, 5), (10, 20), (30, 40))
    assert list(made.flush()) == [Gap(5), STREAM[10:20], Gap(10), STREAM[30:40]]
    assert list(made.flush()) == []


def test_a_fin_ends_the_stream_when_all_before_it_has_come():
    made = direction()
    made.finish(1_020)
    feed(made, (0, 10))
    assert not made.has_ended
    feed(made, (10, 20))
    assert made.has_ended


def test_at_the_end_a_fin_tells_how_much_never_came():
    made = direction()
    feed(made, (0, 10))
    made.finish(1_025)
    assert list(made.flush()) == [Gap(15)]


def test_the_same_segment_is_not_held_twice():
    made = direction()
    feed(made, (10, 20), (10, 20), (10, 15))
    assert made.held_bytes == 10


# --- both directions --------------------------------------------------------------------------------------------------


def duplex(patience: int = 3) -> Duplex[str]:
    made = Duplex("asker", "answerer", patience_packets=patience)
    made.directions["asker"].start(99)
    made.directions["answerer"].start(499)
    return made


def test_an_acknowledged_hole_is_given_up_after_some_patience():
    made = duplex()
    assert made.segment("asker", 110, b"later", 500) == []
    # The answer shows that the ten bytes before "later" arrived, so they will not be sent again.
    assert made.segment("answerer", 500, b"answer", 115) == []
    assert made.segment("answerer", 506, b"", 115) == []
    assert made.segment("answerer", 506, b"", 115) == []
    assert made.segment("answerer", 506, b"", 115) == [
        ("asker", Gap(10)),
        ("asker", b"later"),
        ("answerer", b"answer"),
    ]


def test_a_late_packet_still_fills_an_acknowledged_hole_and_goes_before_the_answer():
    made = duplex()
    assert made.segment("answerer", 500, b"answer", 110) == []
    assert made.segment("asker", 100, b"0123456789", 506) == [("asker", b"0123456789"), ("answerer", b"answer")]


def test_a_hole_in_the_answers_does_not_hold_back_the_questions():
    made = duplex()
    assert made.segment("asker", 100, b"one", 600) == [("asker", b"one")]
    assert made.segment("asker", 103, b"two", 600) == [("asker", b"two")]
    assert made.segment("asker", 106, b"three", 600) == [("asker", b"three")]
    assert made.segment("asker", 111, b"", 600) == [("answerer", Gap(100))]


def test_a_fin_that_was_acknowledged_but_not_captured_is_no_missing_byte():
    made = duplex(patience=0)
    made.segment("asker", 100, b"bye", 500)
    assert made.segment("answerer", 500, b"bye too", 104) == [("answerer", b"bye too")]


def test_an_acknowledgement_far_beyond_any_window_proves_nothing():
    made = duplex(patience=0)
    assert made.segment("answerer", 500, b"answer", 100 + (1 << 30)) == [("answerer", b"answer")]


def test_both_fins_end_the_connection():
    made = duplex()
    made.segment("asker", 100, b"", 500, is_fin=True)
    assert not made.has_ended
    made.segment("answerer", 500, b"last", 101, is_fin=True)
    assert made.has_ended


def test_what_is_kept_back_counts_as_held_and_comes_out_at_the_end():
    made = duplex()
    made.segment("answerer", 500, b"answer", 110)
    assert made.held_bytes == 6
    assert made.flush() == [("asker", Gap(10)), ("answerer", b"answer")]
    assert made.held_bytes == 0
