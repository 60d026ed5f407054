"""Requests to single APIs, frame by frame, against the original: what our own tests expect is what it does."""

from __future__ import annotations

from tests.interop.rerun import shared_tests

FIXTURES = ("client", "controller_client")
globals().update(shared_tests("test_client_quotas_api", "test_scram_api", "test_switched_off", fixtures=FIXTURES))
