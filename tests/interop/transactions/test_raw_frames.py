"""Transactions frame by frame against the original: what our unit tests expect is what it does."""

from __future__ import annotations

import inspect

from tests.unit.broker import test_transaction_apis

for name, test in list(vars(test_transaction_apis).items()):
    if name.startswith("test_") and next(iter(inspect.signature(test).parameters), "") == "desk":
        globals()[name] = test
