"""Offsets committed for lag tools."""

from typing import Any

import pytest

from ottla.client.errors import ConnectError, ResponseError
from ottla.spark import notes
from ottla.spark.topic.group_commits import AGAIN_S, GroupCommits
from ottla.wire.errors import ErrorCode
from tests.unit.spark.fake_cluster import at


class FakeClient:
    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.outcome: Any = None

    def call(self, function: Any, group_id: str, offsets: Any) -> Any:
        self.calls.append((group_id, dict(offsets)))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return dict.fromkeys(offsets, ResponseError(None, "OffsetCommit", self.outcome) if self.outcome else None)


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(autouse=True)
def _forget_warnings() -> None:
    notes._warned_at_s.clear()


def test_the_same_is_committed_again_only_after_an_hour():
    client, clock = FakeClient(), Clock()
    commits = GroupCommits("g", lambda: client, clock)  # type: ignore[arg-type, return-value]
    commits.commit({at(0): 5})
    commits.commit({at(0): 5})
    assert client.calls == [("g", {at(0): 5})]
    clock.now_s = AGAIN_S
    commits.commit({at(0): 5})
    commits.commit({at(0): 6})
    assert client.calls[1:] == [("g", {at(0): 5}), ("g", {at(0): 6})]


@pytest.mark.parametrize("outcome", [ErrorCode.UNKNOWN_MEMBER_ID, ConnectError("there", "refused")])  # type: ignore[arg-type]
def test_what_goes_wrong_is_warned_of_once_a_minute_and_tried_again(outcome: Any, caplog: pytest.LogCaptureFixture):
    client = FakeClient()
    client.outcome = outcome
    commits = GroupCommits("g", lambda: client)  # type: ignore[arg-type, return-value]
    for _ in range(3):
        commits.commit({at(0): 5})
    assert len(client.calls) == 3
    assert caplog.text.count("offsets were not committed to group g") == 1
