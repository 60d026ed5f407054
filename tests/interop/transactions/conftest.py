"""Each suite here runs against a fresh `ottla serve` and, to prove its expectations, against Apache Kafka."""

from tests.interop.node.conftest import bootstrap_servers, broker, desk

__all__ = ["bootstrap_servers", "broker", "desk"]
