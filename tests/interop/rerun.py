"""Component tests of the broker's APIs, run again beside the original: what they expect is what it does.

Only those are taken whose first argument is a raw client of the broker, since the others look into a node of ours or
restart it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module


def shared_tests(*modules: str, fixtures: tuple[str, ...] = ("client",)) -> dict[str, Callable[..., object]]:
    """The tests of modules of `tests.component.broker` for a module here, each with the name of its module."""
    found = {}
    for module in modules:
        for name, test in vars(import_module(f"tests.component.broker.{module}")).items():
            if name.startswith("test_") and next(iter(inspect.signature(test).parameters), "") in fixtures:
                found[f"{module}_{name.removeprefix('test_')}"] = test
    return found
