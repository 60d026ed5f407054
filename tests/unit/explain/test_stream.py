"""Frames out of bytes with holes."""

import pytest

from ottla.explain.stream import SEARCH_BYTES_MAX, Frame, FrameReader, Skipped
from ottla.wire import WireError
from ottla.wire.frames import frame

MARK = b"\xab\xcd"


def find_mark(buffer: bytes, starts: object) -> int | None:
    """A frame begins four bytes before the mark."""
    at = buffer.find(MARK, 4)
    return None if at < 0 else at - 4


def drain(reader: FrameReader) -> list[Frame | Skipped]:
    found = []
    while (event := reader.next_event()) is not None:
        found.append(event)
    return found


def contents(reader: FrameReader) -> list[bytes]:
    return [event.data for event in drain(reader) if isinstance(event, Frame)]


def test_frames_come_out_whole_however_they_come_in():
    data = frame(b"one") + frame(b"") + frame(b"three")
    whole, bytewise = FrameReader(), FrameReader()
    whole.receive(data, 5)
    for at in range(len(data)):
        bytewise.receive(data[at : at + 1], at)
    assert contents(whole) == contents(bytewise) == [b"one", b"", b"three"]
    assert bytewise.held_bytes == 0


def test_a_frame_knows_its_size_and_when_its_last_byte_came():
    reader = FrameReader()
    reader.receive(frame(b"one")[:5], 10)
    reader.receive(frame(b"one")[5:], 20)
    assert drain(reader) == [Frame(b"one", 7, 20)]


def test_an_impossible_size_raises_where_nothing_can_be_searched():
    reader = FrameReader()
    reader.receive(b"\xff\xff\xff\xff", 0)
    with pytest.raises(WireError, match="a frame of -1 bytes"):
        reader.next_event()


def test_an_impossible_size_starts_a_search():
    reader = FrameReader(find_mark)
    reader.receive(b"\x7f\xff\xff\xff junk " + frame(MARK + b"!"), 3)
    assert drain(reader) == [Skipped(0, 10, 3), Frame(MARK + b"!", 7, 3, found=True)]


def test_a_hole_inside_a_frame_costs_that_frame_only():
    reader = FrameReader(find_mark)
    data = frame(b"0123456789") + frame(b"next")
    reader.receive(data[:8], 1)
    reader.receive_gap(3, 2)
    reader.receive(data[11:], 3)
    assert drain(reader) == [Frame(b"0123", 14, 3, missing_bytes=3), Frame(b"next", 8, 3)]
    assert not reader.is_searching


def test_a_hole_up_to_the_end_of_a_frame_ends_it():
    reader = FrameReader(find_mark)
    data = frame(b"0123456789") + frame(b"next")
    reader.receive(data[:8], 1)
    reader.receive_gap(6, 2)
    reader.receive(data[14:], 3)
    assert drain(reader) == [Frame(b"0123", 14, 2, missing_bytes=6), Frame(b"next", 8, 3)]


def test_a_hole_over_the_end_of_a_frame_is_searched_past():
    reader = FrameReader(find_mark)
    data = frame(b"0123456789") + frame(b"swallowed") + frame(MARK)
    reader.receive(data[:8], 1)
    reader.receive_gap(10, 2)
    reader.receive(data[18:], 3)
    assert drain(reader) == [
        Frame(b"0123", 14, 2, missing_bytes=6),
        Skipped(4, 9, 3),
        Frame(MARK, 6, 3, found=True),
    ]


def test_a_hole_between_frames_is_searched_past():
    reader = FrameReader(find_mark)
    reader.receive(frame(b"one"), 1)
    reader.receive_gap(100, 2)
    reader.receive(frame(MARK), 3)
    assert drain(reader)[1:] == [Skipped(100, 0, 3), Frame(MARK, 6, 3, found=True)]


def test_a_rejected_frame_is_searched_from_its_second_byte_on():
    reader = FrameReader(find_mark, in_sync=False)
    reader.receive(frame(MARK + b"false"), 1)
    [false] = drain(reader)
    assert isinstance(false, Frame)
    reader.reject(false)
    reader.receive(frame(MARK + b"true"), 2)
    # The mark of the false frame is found once more, one byte further: that is the caller's to reject, too.
    events = drain(reader)
    assert isinstance(events[0], Skipped)
    assert events[0].passed_bytes >= 1


def test_reading_may_begin_in_the_middle():
    reader = FrameReader(find_mark, in_sync=False)
    reader.receive(b"the tail of something" + frame(MARK), 1)
    assert drain(reader) == [Skipped(0, 21, 1), Frame(MARK, 6, 1, found=True)]


def test_only_so_much_of_a_frame_is_held():
    reader = FrameReader(hold_bytes=10)
    reader.receive(frame(bytes(25)), 1)
    assert drain(reader) == [Frame(bytes(10), 29, 1, cut_bytes=15)]


def test_only_so_much_is_searched_at_a_time():
    reader = FrameReader(find_mark, in_sync=False)
    for _ in range(40):
        reader.receive(bytes(SEARCH_BYTES_MAX // 8), 1)
        assert drain(reader) == []
        assert reader.held_bytes <= SEARCH_BYTES_MAX
    reader.receive(frame(MARK), 2)
    [skipped, _] = drain(reader)
    assert skipped == Skipped(0, 40 * (SEARCH_BYTES_MAX // 8), 2)


def test_the_search_is_told_where_segments_begin():
    starts_seen = []

    def look(buffer: bytes, starts: list[int]) -> None:
        starts_seen.append(list(starts))

    reader = FrameReader(look, in_sync=False)  # type: ignore[arg-type]
    reader.receive(b"abc", 1)
    reader.receive(b"de", 1)
    drain(reader)
    assert starts_seen == [[0], [0, 3]]


@pytest.mark.parametrize(
    ("data", "in_sync", "last"),
    [
        (b"", True, None),
        (b"\0\0", True, Skipped(0, 2, 9)),
        (frame(b"0123456789")[:8], True, Frame(b"0123", 14, 9, missing_bytes=6)),
        (b"junk", False, Skipped(0, 4, 9)),
    ],
)
def test_what_is_left_at_the_end(data: bytes, in_sync: bool, last: object):
    reader = FrameReader(find_mark, in_sync=in_sync)
    reader.receive(data, 1)
    assert drain(reader) == []
    assert reader.close(9) == last
