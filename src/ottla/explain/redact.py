"""Secrets: which fields hold them, and how they are withheld from all output.

A secret is never shown, neither as text nor as hex or JSON; only its position and its size are. That holds for an
incomplete message too: in doubt, a field is withheld. Secrets are

- SASL tokens, bare or inside SaslAuthenticate;
- SCRAM credentials, sent by AlterUserScramCredentials and stored in the metadata log;
- the HMAC of a delegation token, which serves as a password;
- values of settings that the broker marks as sensitive or whose name says so;
- tagged fields that we do not know, in messages that carry any of these.

Requests inside an Envelope are opened and treated like others; if one cannot be opened, it is withheld.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ottla.explain.tree import Node

__all__ = ["RULES", "Rule", "carries_secret", "is_sensitive_setting", "redact"]


class Rule(NamedTuple):
    """A secret field: always secret, or depending on a flag or on the name of a setting beside it."""

    path: str
    named_by: str | None = None
    flagged_by: str | None = None


_SETTING = "Name"
_FLAG = "IsSensitive"

RULES: dict[str, tuple[Rule, ...]] = {
    "SaslAuthenticateRequest": (Rule("AuthBytes"),),
    "SaslAuthenticateResponse": (Rule("AuthBytes"),),
    "AlterUserScramCredentialsRequest": (Rule("Upsertions[].Salt"), Rule("Upsertions[].SaltedPassword")),
    "UserScramCredentialRecord": (Rule("Salt"), Rule("StoredKey"), Rule("ServerKey")),
    "CreateDelegationTokenResponse": (Rule("Hmac"),),
    "RenewDelegationTokenRequest": (Rule("Hmac"),),
    "ExpireDelegationTokenRequest": (Rule("Hmac"),),
    "DescribeDelegationTokenResponse": (Rule("Tokens[].Hmac"),),
    "DescribeConfigsResponse": (
        Rule("Results[].Configs[].Value", _SETTING, _FLAG),
        Rule("Results[].Configs[].Synonyms[].Value", _SETTING),
    ),
    "AlterConfigsRequest": (Rule("Resources[].Configs[].Value", _SETTING),),
    "IncrementalAlterConfigsRequest": (Rule("Resources[].Configs[].Value", _SETTING),),
    "CreateTopicsRequest": (Rule("Topics[].Configs[].Value", _SETTING),),
    "CreateTopicsResponse": (Rule("Topics[].Configs[].Value", _SETTING, _FLAG),),
    "ConfigRecord": (Rule("Value", _SETTING),),
}
"""Message -> its secret fields."""

_SECRET_BYTES_MIN = 4
# Kafka's own settings of type PASSWORD, and likely names of plugins' settings.
_SENSITIVE = re.compile(
    r"passw|passphrase|secret|jaas|credential|private|token|scram|hmac|keystore\.(key|certificate)"
    r"|truststore\.certificate|(api|access)[._-]?key|(^|[._-])key$",
    re.IGNORECASE,
)


def is_sensitive_setting(name: str) -> bool:
    """Whether the value of a setting with this name is withheld."""
    return _SENSITIVE.search(name) is not None


def redact(message: str, root: Node) -> None:
    """Withhold the secrets in the tree of a message."""
    rules = RULES.get(message)
    if rules is None:
        return
    for rule in rules:
        for node, trail in root.find(rule.path):
            if _is_secret(rule, trail[-1]):
                node.withhold()
    for node in root.walk():
        if node.name.startswith("tag") and node.type == "bytes" and node.name[3:].isdigit():
            node.withhold()


def _is_secret(rule: Rule, struct: Node) -> bool:
    if rule.named_by is None:
        return True
    if rule.flagged_by is not None:
        flag = struct.child(rule.flagged_by)
        if flag is None or flag.value is True:  # an incomplete message may lack the flag
            return True
    name = struct.child(rule.named_by)
    return name is None or not isinstance(name.value, str) or is_sensitive_setting(name.value)


def carries_secret(root: Node) -> bool:
    """Whether the tree has a withheld value that is long enough to be a secret."""
    return any(node.withheld and node.end - node.start > _SECRET_BYTES_MIN for node in root.walk())
