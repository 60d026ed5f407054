"""Share groups: each suite runs against `ottla serve` and, to prove its expectations, against Apache Kafka.

`OTTLA_INTEROP_BROKERS=apache` (or `ottla`) runs against one of them alone.
"""

from tests.interop.groups.conftest import boot, bootstrap_servers, broker

__all__ = ["boot", "bootstrap_servers", "broker"]
