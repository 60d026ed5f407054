"""TLS and logins between the nodes of a cluster under test. Clients come in by a listener without either."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ottla.client.properties import settings_of
from ottla.client.settings import Changes
from ottla.testing.certificates import LOCAL_HOSTS, CertificateAuthority
from ottla.testing.clusters.layout import BETWEEN_BROKERS
from ottla.wire.properties import read_properties

__all__ = ["client_of_controllers", "node_settings"]

PROTOCOLS: Final = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
_INTERNAL: Final = "INTERNAL"
_PREFIX: Final = "listener.name.controller."
_JAAS: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="node" password="node-secret" user_node="node-secret";'
)


def node_settings(protocol: str, directory: Path, hosts: Sequence[str] = LOCAL_HOSTS) -> dict[str, str]:
    """What all nodes are set to, so that they speak to each other in a secured way. `hosts` are all their names."""
    if protocol.upper() not in PROTOCOLS:
        raise ValueError(f"security={protocol!r}; it can be plaintext, {', '.join(PROTOCOLS).lower()}")
    authority = CertificateAuthority(directory / "certificates")
    of_listener = {
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": _JAAS,
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("node", hosts=hosts).pem),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
    }
    between = f"CONTROLLER:{protocol.upper()},{_INTERNAL}:{protocol.upper()}"
    return {
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{between}",
        BETWEEN_BROKERS: _INTERNAL,
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        **{f"{_PREFIX}{name}": text for name, text in of_listener.items()},
        **{f"listener.name.{_INTERNAL.lower()}.{name}": text for name, text in of_listener.items()},
    }


def client_of_controllers(properties: Path) -> Changes:
    """What a client needs to speak to the controllers of a cluster, from the properties of one of its nodes."""
    settings = read_properties(properties.read_text(encoding="utf-8"))
    protocols = dict(each.split(":") for each in settings.get("listener.security.protocol.map", "").split(",") if each)
    own = {name.removeprefix(_PREFIX): text for name, text in settings.items() if name.startswith(_PREFIX)}
    login = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": own.get("plain.sasl.jaas.config", "")}
    return settings_of({"security.protocol": protocols.get("CONTROLLER", "PLAINTEXT"), **own, **login})
