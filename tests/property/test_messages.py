"""Any value that fits a message's shape survives bytes and JSON, through the compiled codec and the interpreter."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla import wire
from ottla.wire.compile import classes_of, message_shape
from ottla.wire.trace import decode_slowly, encode_slowly
from tests.property.shapes import messages

EXAMPLES = 6


@pytest.mark.parametrize("name", wire.names())
def test_a_value_survives_bytes_and_json(name: str) -> None:
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def survives(data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(wire.versions(name)))
        shape, classes = message_shape(name, version), classes_of(name)
        message = data.draw(messages(shape, classes))
        raw = wire.encode(message, version)
        assert wire.decode(name, version, raw) == message
        assert encode_slowly(shape, message) == raw
        assert decode_slowly(shape, classes, raw) == message
        # JSON has no place for unknown tags: what it gives back is stable without them.
        bare = wire.from_json(name, version, wire.to_json(message, version))
        assert wire.to_json(bare, version) == wire.to_json(message, version)

    survives()
