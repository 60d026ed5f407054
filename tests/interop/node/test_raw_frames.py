"""Requests to single APIs, frame by frame, against the original: what our own tests expect is what it does."""

from __future__ import annotations

from tests.interop.rerun import shared_tests

globals().update(
    shared_tests(
        "test_cluster_apis",
        "test_delete_records",
        "test_describe_producers",
        "test_fetch",
        "test_fetch_sessions",
        "test_group_apis",
        "test_list_offsets",
        "test_offset_apis",
        "test_offset_for_leader_epoch",
        "test_produce",
        "test_topic_apis",
        "test_txn_offset_commit",
    )
)
