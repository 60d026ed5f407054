"""The tables about groups as Spark makes them."""

from __future__ import annotations

import pytest

from ottla.spark.jobs.group_fold import folded
from ottla.spark.jobs.params import Params


def test_without_records_and_samples_there_is_nothing_to_fold() -> None:
    with pytest.raises(ValueError, match="needs records or samples"):
        folded({}, Params())
