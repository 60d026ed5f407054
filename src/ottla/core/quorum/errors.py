"""The error of a quorum that this node cannot take part in."""


class QuorumError(ValueError):
    """A quorum that this node cannot take part in, with the reason."""
