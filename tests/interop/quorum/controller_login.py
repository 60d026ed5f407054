"""TLS and logins between the nodes of a quorum (`--cluster-security sasl_ssl`), and how a client gets to its
controllers then. Other clients come in by a listener without either."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path

from ottla.testing.clusters.security import node_settings
from ottla.wire.types import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.component.broker.raw_client import Connection

_OF_CONTROLLERS = "listener.name.controller."


class ControllerLogin:
    """`settings` are those of every node."""

    def __init__(self, protocol: str, directory: Path, hosts: Sequence[str]) -> None:
        self.settings = node_settings(protocol, directory, hosts)
        self._protocol = protocol.upper()
        self._own = {
            name.removeprefix(_OF_CONTROLLERS): text
            for name, text in self.settings.items()
            if name.startswith(f"{_OF_CONTROLLERS}ssl.")
        }

    @property
    def client_properties(self) -> dict[str, str]:
        """What one of Apache Kafka's tools needs."""
        jaas = self.settings[f"{_OF_CONTROLLERS}plain.sasl.jaas.config"]
        return {"security.protocol": self._protocol, "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas} | self._own

    def log_in(self, connection: Connection, host: str) -> None:
        if self._protocol.endswith("SSL"):
            context = ssl.create_default_context(cafile=self._own["ssl.truststore.location"])
            context.load_cert_chain(self._own["ssl.keystore.location"])
            connection.secure(context, host)
        if self._protocol.startswith("SASL"):
            assert connection.ask(SaslHandshakeRequest("PLAIN"), 1).error_code == 0
            assert connection.ask(SaslAuthenticateRequest(b"\0node\0node-secret"), 2).error_code == 0
