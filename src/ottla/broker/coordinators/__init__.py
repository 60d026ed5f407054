"""The coordinator runtime: cores without input or output, and the partitions that hold what they decide."""

from ottla.broker.coordinators.coordinators import Coordinators

__all__ = ["Coordinators"]
