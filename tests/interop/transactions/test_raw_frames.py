"""Transactions frame by frame against the original: what our own tests expect is what it does."""

from __future__ import annotations

from tests.interop.rerun import shared_tests

globals().update(shared_tests("test_transaction_apis"))
