"""The errors of this package. Bytes that cannot be read raise WireError as everywhere."""

from __future__ import annotations

from ottla.wire.reject import Reject

__all__ = ["MetadataFault", "Reject", "UnsupportedMetadataError"]


class MetadataFault(ValueError):
    """A record that does not fit the state it is replayed onto. The record has changed nothing."""


class UnsupportedMetadataError(MetadataFault):
    """A record of a later version or an unknown feature: what follows cannot be understood, so a node must stop."""
