"""The scenarios of single APIs, frame by frame, against the original: what our unit tests expect is what it does.

Those that look into a node of ours, or restart it, stay at home.
"""

from __future__ import annotations

import inspect

from tests.unit.broker import (
    test_cluster_apis,
    test_delete_records,
    test_describe_producers,
    test_fetch,
    test_fetch_sessions,
    test_group_apis,
    test_list_offsets,
    test_offset_apis,
    test_offset_for_leader_epoch,
    test_produce,
    test_topic_apis,
    test_txn_offset_commit,
)

for module in (
    test_cluster_apis,
    test_delete_records,
    test_describe_producers,
    test_fetch,
    test_fetch_sessions,
    test_group_apis,
    test_list_offsets,
    test_offset_apis,
    test_offset_for_leader_epoch,
    test_produce,
    test_topic_apis,
    test_txn_offset_commit,
):
    for name, test in list(vars(module).items()):
        if name.startswith("test_") and next(iter(inspect.signature(test).parameters), "") == "desk":
            globals()[f"{module.__name__.rpartition('.')[2]}_{name.removeprefix('test_')}"] = test
