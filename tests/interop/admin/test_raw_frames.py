"""Scenarios of single APIs, frame by frame, against the original: what our unit tests expect is what it does."""

from __future__ import annotations

import inspect

from tests.unit.broker import test_client_quotas_api, test_scram_api, test_switched_off

for module in (test_client_quotas_api, test_scram_api, test_switched_off):
    for name, test in list(vars(module).items()):
        parameters = inspect.signature(test).parameters if name.startswith("test_") else ()
        if next(iter(parameters), "") in ("desk", "controller_desk"):
            globals()[f"{module.__name__.rpartition('.')[2]}_{name.removeprefix('test_')}"] = test
