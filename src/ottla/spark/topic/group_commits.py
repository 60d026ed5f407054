"""Commits offsets to a consumer group, so that tools can show the lag of the stream. Nothing reads them back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from ottla.client.blocking import BlockingClient
from ottla.client.errors import ClientError
from ottla.client.group_offsets import commit
from ottla.spark.notes import warn_seldom
from ottla.spark.offsets import Offsets

__all__ = ["GroupCommits"]

AGAIN_S: Final = 3600.0
"""Committed offsets expire after some days, so they are committed again after this time."""


class GroupCommits:
    def __init__(
        self, group_id: str, client: Callable[[], BlockingClient], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._group_id = group_id
        self._client = client
        self._now_s = now_s
        self._last: tuple[Offsets, float] | None = None

    def commit(self, offsets: Offsets) -> None:
        """Commit, unless that was done recently. An error is logged as a warning and never ends the stream."""
        if self._last is not None and self._last[0] == offsets and self._now_s() - self._last[1] < AGAIN_S:
            return
        try:
            outcomes = self._client().call(commit, self._group_id, offsets)
        except ClientError as error:
            warn_seldom(f"offsets were not committed to group {self._group_id}: {error}")
            return
        failed = next((error for error in outcomes.values() if error is not None), None)
        if failed is not None:
            warn_seldom(f"offsets were not committed to group {self._group_id}, which may be in use: {failed}")
            return
        self._last = (dict(offsets), self._now_s())
