"""What a task of a share group's stream does, against a broker in this process."""

from __future__ import annotations

import pytest

from ottla.spark.errors import OttlaSparkError
from ottla.spark.options import read_options
from ottla.spark.share.offsets import Acquisition
from ottla.spark.share.options import ShareOptions
from ottla.spark.share.source import ShareDataSource
from ottla.spark.share.task_reader import NEAR_OFFSETS, _spans


def test_ranges_far_from_each_other_are_fetched_apart() -> None:
    far = 10 + NEAR_OFFSETS
    ranges = [Acquisition(0, 4, 1), Acquisition(8, 9, 1), Acquisition(far + 1, far + 3, 1)]
    assert list(_spans(ranges)) == [(0, 10), (far + 1, far + 4)]


# --- rejecting --------------------------------------------------------------------------------------------------------


# --- what Spark calls -------------------------------------------------------------------------------------------------


def test_a_batch_query_is_refused() -> None:
    given = {"kafka.bootstrap.servers": "h:1", "group": "g", "subscribe": "jobs"}
    with pytest.raises(OttlaSparkError, match="ottla-share is a stream"):
        ShareDataSource(given).reader(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "option group: it is required"),
        ({"group": "g"}, "option subscribe: it is required"),
        ({"group": "g", "subscribe": "t", "rejectWhen": "judge"}, "option rejectWhen: 'judge' is not a function"),
        ({"group": "g", "subscribe": "t", "startingOffsets": "latest"}, "unknown option startingOffsets"),
    ],
)
def test_options_that_cannot_be(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(OttlaSparkError) as caught:
        read_options(ShareOptions, {"kafka.bootstrap.servers": "h:1", **options})
    assert str(caught.value).startswith(sentence)
