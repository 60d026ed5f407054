"""Whatever the network does to the segments of a stream, the stream comes out."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ottla.explain.exchanges import Connection, Exchange, Side
from ottla.explain.reassembly import Direction, Gap
from tests.unit.explain import packets as made

MODULUS = 1 << 32
STREAMS = st.binary(min_size=1, max_size=300)


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[bytes, list[tuple[int, int]]]:
    """A stream, and the places of segments that cover it: cut anywhere, in any order, some twice, some wider."""
    stream = draw(STREAMS)
    cuts = sorted({0, len(stream), *draw(st.lists(st.integers(0, len(stream)), max_size=20))})
    places = list(pairwise(cuts))
    for start, end in draw(st.lists(st.tuples(st.integers(0, len(stream)), st.integers(0, len(stream))), max_size=10)):
        places.append((min(start, end), max(start, end)))
    return stream, draw(st.permutations(places))


@given(deliveries(), st.integers(0, MODULUS - 1))
def test_any_segmentation_order_and_repetition_gives_the_stream(
    delivery: tuple[bytes, list[tuple[int, int]]], first: int
):
    stream, places = delivery
    direction = Direction()
    direction.start((first - 1) % MODULUS)
    pieces = [p for start, end in places for p in direction.segment((first + start) % MODULUS, stream[start:end])]
    assert b"".join(piece for piece in pieces if isinstance(piece, bytes)) == stream
    assert not any(isinstance(piece, Gap) for piece in pieces)
    assert direction.held_bytes == 0


@given(deliveries(), st.integers(0, MODULUS - 1), st.sets(st.integers(0, 30)))
def test_what_never_came_is_a_gap_of_that_size(
    delivery: tuple[bytes, list[tuple[int, int]]], first: int, lost: set[int]
):
    stream, places = delivery
    kept = [place for index, place in enumerate(places) if index not in lost]
    direction = Direction()
    direction.start((first - 1) % MODULUS)
    pieces = [p for start, end in kept for p in direction.segment((first + start) % MODULUS, stream[start:end])]
    direction.finish((first + len(stream)) % MODULUS)
    pieces += direction.flush()
    seen = {at for start, end in kept for at in range(start, end)}
    rebuilt: list[int | None] = []
    for piece in pieces:
        rebuilt += [None] * piece.missing_bytes if isinstance(piece, Gap) else list(piece)
    assert rebuilt == [stream[at] if at in seen else None for at in range(len(stream))]


@given(st.lists(st.integers(1, 60), max_size=40), st.integers(1, 6))
def test_frames_are_found_however_the_bytes_are_cut(sizes: list[int], count: int):
    asked = b"".join(made.metadata_request(number, "orders") for number in range(count))
    answered = b"".join(made.metadata_response(number, "orders") for number in range(count))
    connection = Connection()
    found = []
    for side, data in ((Side.CLIENT, asked), (Side.BROKER, answered)):
        at = 0
        for size in [*sizes, len(data)]:
            found += connection.receive(side, data[at : at + size], at)
            at += size
    assert [event.outcome for event in found if isinstance(event, Exchange)] == ["answered"] * count
    assert len(found) == count
    assert connection.held_bytes == 0


@given(st.binary(max_size=2_000), st.lists(st.integers(1, 300), max_size=10), st.booleans())
def test_nonsense_is_passed_over_and_never_raises(noise: bytes, sizes: list[int], in_sync: bool):
    connection = Connection(in_sync=in_sync)
    at = 0
    for number, size in enumerate([*sizes, len(noise)]):
        side = Side.CLIENT if number % 2 else Side.BROKER
        connection.receive(side, noise[at : at + size], number)
        at += size
    connection.receive_gap(Side.CLIENT, 10, 0)
    connection.close(0)
