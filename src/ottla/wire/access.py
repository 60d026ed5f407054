"""What authentication and authorization share on the wire: names, and Kafka's numbers for them."""

from enum import IntEnum
from typing import Final

ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of a client that has not logged in."""
SCRAM_MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""SCRAM mechanisms and their numbers in requests and records."""
CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""


def label(number: IntEnum) -> str:
    """One of these numbers as commands and pages write it: `transactional-id`."""
    return number.name.lower().replace("_", "-")


class Operation(IntEnum):
    """An operation that a principal may be allowed to do."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """A type of resource on which operations are allowed."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """What the resource name of an access control list stands for."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Whether an access control list allows or denies."""

    ANY = 1
    DENY = 2
    ALLOW = 3
