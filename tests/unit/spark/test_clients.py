"""Errors on their way to Spark."""

import traceback

import pytest

from ottla.client.errors import ConfigurationError
from ottla.spark.errors import OttlaSparkError
from ottla.spark.query_errors import one_sentence
from ottla.wire.fault import WireError


def deep(error: Exception, depth: int = 10) -> None:
    if depth == 0:
        raise error
    deep(error, depth - 1)


@pytest.mark.parametrize(
    "error",
    [ConfigurationError("no"), WireError("RecordBatch", 0, "no"), OttlaSparkError("no")],
    ids=lambda e: type(e).__name__,
)
def test_frames_below_are_left_out(error: Exception):
    with pytest.raises(OttlaSparkError, match="no") as raised, one_sentence():
        deep(error)
    lines = "".join(traceback.format_exception(raised.value))
    assert "in deep" not in lines
    assert "During handling" not in lines


def test_what_nobody_expects_keeps_its_frames():
    with pytest.raises(KeyError) as raised, one_sentence():
        deep(KeyError("bug"))
    assert "in deep" in "".join(traceback.format_exception(raised.value))
