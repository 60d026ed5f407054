"""The coordinator runtime: runs the cores of all coordinators over the partitions of their internal topics."""

from ottla.broker.coordinators.coordinators import Coordinators

__all__ = ["Coordinators"]
