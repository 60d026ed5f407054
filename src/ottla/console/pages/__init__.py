"""All pages of the console, one module each."""

from __future__ import annotations

from typing import Final

from ottla.console.page import Page
from ottla.console.pages import (
    accounts,
    acls,
    decode,
    features,
    findings,
    group,
    group_offsets,
    group_timeline,
    group_topology,
    groups,
    live,
    metadata_log,
    nodes,
    overview,
    pipeline,
    quorum,
    record,
    records,
    share_window,
    topic,
    topics,
    transactions,
    wire,
)

__all__ = ["PAGES"]

PAGES: Final[tuple[Page, ...]] = (
    overview.PAGE,
    groups.PAGE,
    group.PAGE,
    group_offsets.PAGE,
    group_timeline.PAGE,
    group_topology.PAGE,
    share_window.PAGE,
    topics.PAGE,
    *metadata_log.PAGES,
    topic.PAGE,
    records.PAGE,
    record.PAGE,
    findings.PAGE,
    findings.RULE_PAGE,
    nodes.PAGE,
    nodes.NODE_PAGE,
    quorum.PAGE,
    features.PAGE,
    transactions.PAGE,
    acls.PAGE,
    accounts.USERS_PAGE,
    accounts.QUOTAS_PAGE,
    accounts.TOKENS_PAGE,
    live.PAGE,
    pipeline.PAGE,
    decode.PAGE,
    *wire.PAGES,
)
