"""ottla, Kafka's little sister.

Importing this package loads nothing else: ``from ottla import wire`` brings the codec and only the codec.
"""

__version__ = "0.1.0"
