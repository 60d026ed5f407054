"""Certificates, users and client settings of a secured broker under test."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ottla.testing.certificates import CertificateAuthority

__all__ = ["USERS", "BrokerSecurity"]

PROTOCOLS: Final = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
USERS: Final = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
"""Names and passwords, for PLAIN and SCRAM alike. They are for tests, and no secret."""
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class BrokerSecurity:
    def __init__(self, protocol: str, directory: Path) -> None:
        self.protocol = protocol.upper()
        if self.protocol not in PROTOCOLS:
            known = ", ".join(each.lower() for each in PROTOCOLS)
            raise ValueError(f"security={protocol!r}; it can be plaintext, {known}")
        self.has_tls = self.protocol.endswith("SSL")
        self.has_sasl = self.protocol.startswith("SASL")
        self.authority = CertificateAuthority(directory)
        self._broker = self.authority.issue("broker")
        self._client = self.authority.issue("client")

    @property
    def ca_file(self) -> Path:
        """What clients have to trust."""
        return self.authority.file

    def settings(self) -> dict[str, str]:
        """The settings of the broker."""
        found: dict[str, str] = {}
        if self.has_tls:
            found |= _store("keystore", self._broker.pem) | _store("truststore", self.ca_file)
            found["ssl.client.auth"] = "requested"
        if self.has_sasl:
            users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
            own = f"listener.name.{self.protocol.lower()}"
            found["sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
            found[f"{own}.plain.sasl.jaas.config"] = f"{_PLAIN_MODULE} required {users};"
            for mechanism in MECHANISMS[1:]:
                found[f"{own}.{mechanism.lower()}.sasl.jaas.config"] = f"{_SCRAM_MODULE} required;"
        return found

    def client_properties(
        self, user: str = "alice", *, password: str | None = None, mechanism: str = "SCRAM-SHA-512"
    ) -> dict[str, str]:
        """What a client of a user needs, by the names that Java clients and `ottla` have for it."""
        found = {"security.protocol": self.protocol}
        if self.has_tls:
            found |= _store("truststore", self.ca_file)
        if self.has_sasl:
            module = _PLAIN_MODULE if mechanism == "PLAIN" else _SCRAM_MODULE
            secret = USERS.get(user, "") if password is None else password
            found["sasl.mechanism"] = mechanism
            found["sasl.jaas.config"] = f'{module} required username="{user}" password="{secret}";'
        elif self.has_tls:
            found |= _store("keystore", self._client.pem)
        return found

    def librdkafka_properties(
        self, user: str = "alice", *, password: str | None = None, mechanism: str = "SCRAM-SHA-512"
    ) -> dict[str, str]:
        """The same, by the names that librdkafka has for it (confluent-kafka and others)."""
        found = {"security.protocol": self.protocol}
        if self.has_tls:
            found["ssl.ca.location"] = str(self.ca_file)
        if self.has_sasl:
            secret = USERS.get(user, "") if password is None else password
            found |= {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": secret}
        elif self.has_tls:
            found["ssl.certificate.location"] = str(self._client.certificate)
            found["ssl.key.location"] = str(self._client.key)
        return found

    def add_users(self, bootstrap_servers: str) -> None:
        """Give all users SCRAM credentials."""
        from ottla.client.blocking import BlockingClient
        from ottla.client.properties import settings_of
        from ottla.client.users import ScramUser, set_users

        login = settings_of(self.client_properties("admin", mechanism="PLAIN"))
        with BlockingClient(bootstrap_servers, **login) as client:
            for mechanism in MECHANISMS[1:]:
                users = [ScramUser(name, password, mechanism) for name, password in USERS.items()]
                client.call(set_users, users)


def _store(kind: str, path: Path) -> dict[str, str]:
    return {f"ssl.{kind}.type": "PEM", f"ssl.{kind}.location": str(path)}
