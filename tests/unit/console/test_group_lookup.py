"""Groups that are deleted while somebody looks at their pages."""

from __future__ import annotations

import pytest

from ottla.client.errors import ResponseError
from ottla.console.page import NotFoundError, Page
from ottla.console.pages import group_offsets, group_topology, share_window
from ottla.console.watcher import ClusterWatcher
from ottla.health.facts import Group
from ottla.wire.errors import ErrorCode
from tests.unit.console.seen import context_of, loaded, watcher_of


@pytest.mark.parametrize(
    ("page", "kind"),
    [(group_offsets.PAGE, "share"), (group_topology.PAGE, "streams"), (share_window.PAGE, "share")],
    ids=lambda each: getattr(each, "name", each),
)
def test_a_group_that_its_coordinator_no_longer_has_is_not_found(
    page: Page, kind: str, monkeypatch: pytest.MonkeyPatch
):
    async def ask(*_: object) -> None:
        raise ResponseError(None, "Describe", ErrorCode.GROUP_ID_NOT_FOUND, "group risk")

    monkeypatch.setattr(ClusterWatcher, "ask", ask)
    watcher = watcher_of(Group(group="risk", type=kind, state="Empty"))
    with pytest.raises(NotFoundError) as caught:
        loaded(page, context_of(watcher, group="risk", topic="orders", partition="0"))
    assert f"last seen as a {kind} group, Empty, with 0 members" in caught.value.last
    assert "risk" not in caught.value.known
