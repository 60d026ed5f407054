"""Tools for tests of programs that use Kafka: a broker of your own, and faults on demand.

    with ottla.testing.broker() as b:
        run_my_program(b.bootstrap_servers)

pytest finds the fixture `ottla_broker` without any setup. docs/testing.md is the tutorial. Importing this package loads
nothing else; the broker is imported at its first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.testing.brokers import Broker, BrokerError, broker
    from ottla.testing.faults import Fault, Faults

__all__ = ["Broker", "BrokerError", "Fault", "Faults", "broker"]

_HOMES = {"Broker": "brokers", "BrokerError": "brokers", "broker": "brokers", "Fault": "faults", "Faults": "faults"}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
