"""Garbage collection after each task leaves out what is loaded."""

import gc
import sys
from types import ModuleType

import pytest

from ottla.spark.worker_memory import keep_modules


def test_modules_are_exempt_when_there_are_new_ones(monkeypatch: pytest.MonkeyPatch):
    keep_modules()
    exempt = gc.get_freeze_count()
    assert exempt > 0
    keep_modules()
    assert gc.get_freeze_count() <= exempt
    monkeypatch.setitem(sys.modules, "just_loaded", ModuleType("just_loaded"))
    more = [[] for _ in range(1000)]
    keep_modules()
    assert gc.get_freeze_count() > exempt
    assert len(more) == 1000
    gc.unfreeze()
