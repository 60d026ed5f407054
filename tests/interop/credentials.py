"""A user with a password, and the lines with which brokers and clients log in."""

from __future__ import annotations

USER, PASSWORD = "alice", "sage, thyme=basil"
JAAS = 'org.apache.kafka.common.security.{module} required username="{user}" password="{password}"{more};'
SCRAM_LINE = JAAS.format(module="scram.ScramLoginModule", user=USER, password=PASSWORD, more="")
PLAIN_LINE = JAAS.format(
    module="plain.PlainLoginModule", user=USER, password=PASSWORD, more=f' user_{USER}="{PASSWORD}"'
)


def scram_password() -> str:
    """kafka-storage cannot take a comma in a password."""
    return PASSWORD.replace(",", "")
