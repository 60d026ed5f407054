"""Server-side assignors of consumer and share groups: who shall own which partition. Pure functions over plain values.

An assignor is given the members in the order of their ids and the number of partitions of each topic, and gives each
member its target. It knows no group, no epoch and no clock; how members get from what they own to their targets is
reconciliation. What it must keep, and what the property tests hold it to: no partition twice, none left out that
somebody subscribes to, nobody gets what he does not subscribe to, and the promises of the algorithm (see each module).
`simple`, of share groups, lets several members have a partition. `computation` runs any of them outside the event loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.core.groups.assignors.range import assign_range
from ottla.core.groups.assignors.spec import Assignor, MemberSpec, Target
from ottla.core.groups.assignors.uniform import assign_uniform

__all__ = ["ASSIGNORS", "JAVA_CLASSES", "Assignor", "MemberSpec", "Target", "assign_range", "assign_uniform"]

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}
"""Those of consumer groups, by the names that members and group.consumer.assignors use."""
JAVA_CLASSES: Final[Mapping[str, str]] = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
"""group.consumer.assignors may name Kafka's own classes as well."""
