"""A node, ottla's or Apache Kafka's, that wants TLS and logins. Both get the same settings."""

from __future__ import annotations

import json
import ssl
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ottla.testing.certificates import CertificateAuthority, Issued
from tests.interop.apache import ApacheKafka, free_ports
from tests.interop.credentials import JAAS, PASSWORD, PLAIN_LINE, SCRAM_LINE, USER, scram_password
from tests.interop.serving import OttlaServe

SESSION_MS = 2_000
ISSUER, AUDIENCE = "https://issuer.example", "kafka"
OAUTH = "org.apache.kafka.common.security.oauthbearer"
OAUTH_LINE = f"{OAUTH}.OAuthBearerLoginModule required;"
VALIDATOR = f"{OAUTH}.OAuthBearerValidatorCallbackHandler"
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
DOORS = {
    "SASL": "SASL_PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "BOTH": "SASL_SSL",
    "BRIEF": "SASL_PLAINTEXT",
    "EXPIRED": "SSL",
    "STRAYED": "SSL",
}
"""Listeners. The sessions of BRIEF last for two seconds; the certificate of EXPIRED has expired, and that of STRAYED
belongs to another host."""
TOKEN_KEY = "the secret key of all tokens"


class Guarded(NamedTuple):
    """A node and its listeners."""

    node: ApacheKafka | OttlaServe
    doors: dict[str, str]
    authority: CertificateAuthority
    client: Issued
    tokens: Tokens

    def __getattr__(self, name: str) -> str:
        """The address of a listener."""
        try:
            return self.doors[name.upper()]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def plain(self) -> str:
        return self.node.bootstrap_servers

    @property
    def ca(self) -> Path:
        return self.authority.file

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca))

    def properties(self, door: str, mechanism: str = "", **login: str) -> dict[str, str]:
        """The settings of a Java client."""
        found = {"bootstrap.servers": self.doors[door], "security.protocol": DOORS[door]}
        if DOORS[door].endswith("SSL"):
            found |= store("truststore", self.ca)
        if mechanism:
            found |= {"sasl.mechanism": mechanism} | java_login(mechanism, **login)
        return found


def store(kind: str, path: Path) -> dict[str, str]:
    return {f"ssl.{kind}.type": "PEM", f"ssl.{kind}.location": str(path)}


def java_login(
    mechanism: str, user: str = USER, password: str = "", token_file: str = "", more: str = ""
) -> dict[str, str]:
    if mechanism == "OAUTHBEARER":
        return {
            "sasl.jaas.config": OAUTH_LINE,
            "sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": f"file://{token_file}",
        }
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    word = password or (PASSWORD if mechanism == "PLAIN" else scram_password())
    return {"sasl.jaas.config": JAAS.format(module=module, user=user, password=word, more=more)}


def config_file(guarded: Guarded, folder: Path, door: str, mechanism: str, **login: str) -> str:
    """A file with the settings of a Java client."""
    path = folder / f"{door}-{mechanism}-{len(list(folder.iterdir()))}.properties"
    properties = guarded.properties(door, mechanism, **login)
    path.write_text("".join(f"{name}={text}\n" for name, text in properties.items()))
    return str(path)


class Tokens:
    """An issuer of tokens: its keys in a file, and tokens with whatever is wished."""

    def __init__(self, folder: Path) -> None:
        from cryptography.hazmat.primitives.asymmetric import rsa

        self.folder = folder
        self._key = rsa.generate_private_key(65537, 2048)
        self._stranger = rsa.generate_private_key(65537, 2048)
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA",
            "kid": "one",
            "use": "sig",
            "alg": "RS256",
            "n": _number(numbers.n),
            "e": _number(numbers.e),
        }
        self.keys = folder / "keys.json"
        self.keys.write_text(json.dumps({"keys": [key]}))

    def make(self, *, is_forged: bool = False, seconds: float = 600, **claims: Any) -> str:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        now_s = int(time.time())
        said = {"sub": USER, "iss": ISSUER, "aud": AUDIENCE, "iat": now_s - 60, "exp": int(now_s + seconds)} | claims
        said = {name: value for name, value in said.items() if value is not None}
        signed = f"{_text({'alg': 'RS256', 'kid': 'one'})}.{_text(said)}"
        key = self._stranger if is_forged else self._key
        return f"{signed}.{_base64(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def file(self, name: str, token: str) -> Path:
        path = self.folder / f"{name}.jwt"
        path.write_text(token)
        return path


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _text(value: dict[str, Any]) -> str:
    return _base64(json.dumps(value).encode())


def _number(value: int) -> str:
    return _base64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


@contextmanager
def guarded_node(kind: str, folder: Path, more: Mapping[str, str] = MappingProxyType({})) -> Iterator[Guarded]:
    """A running node of a kind, with more settings."""
    authority = CertificateAuthority(folder / "certificates")
    tokens = Tokens(folder)
    credentials = [f"SCRAM-SHA-{bits}=[name={USER},password={scram_password()}]" for bits in (256, 512)]
    added = [word for each in credentials for word in ("--add-scram", each)]
    node: ApacheKafka | OttlaServe
    if kind == "apache":
        options = {ALLOWED_URLS: f"file://{tokens.keys}"}
        node = ApacheKafka(folder / "node", format_arguments=("--standalone", *added), java_properties=options)
    else:
        node = OttlaServe(folder / "node", format_arguments=("--standalone", *added))
    ports = dict(zip(DOORS, free_ports(len(DOORS)), strict=True))
    node.settings |= settings(node, ports, authority, tokens) | dict(more)
    if kind == "ottla":
        node.settings["ottla.login.failures.per.minute"] = "0"
    doors = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    with node:
        yield Guarded(node, doors, authority, authority.issue("alice"), tokens)


def settings(
    node: ApacheKafka | OttlaServe, ports: dict[str, int], authority: CertificateAuthority, tokens: Tokens
) -> dict[str, str]:
    opened = "".join(f",{name}://127.0.0.1:{port}" for name, port in ports.items())
    listeners = f"PLAINTEXT://{node.bootstrap_servers},CONTROLLER://{node.controller_servers}{opened}"
    protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"} | DOORS
    expired = authority.issue("expired", valid_for=timedelta(days=-1))
    strayed = authority.issue("strayed", hosts=("elsewhere.example",))
    found = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "delegation.token.secret.key": TOKEN_KEY,
        **store("keystore", authority.issue("broker", hosts=("127.0.0.1",)).pem),
        **store("truststore", authority.file),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=([a-z]+)$/$1/U",
        "listener.name.expired.ssl.keystore.location": str(expired.pem),
        "listener.name.strayed.ssl.keystore.location": str(strayed.pem),
        "listener.name.brief.connections.max.reauth.ms": str(SESSION_MS),
    }
    for name in ("sasl", "both", "brief"):
        own = f"listener.name.{name}"
        found |= {
            f"{own}.sasl.enabled.mechanisms": ",".join(MECHANISMS),
            f"{own}.plain.sasl.jaas.config": PLAIN_LINE,
            f"{own}.scram-sha-256.sasl.jaas.config": SCRAM_LINE,
            f"{own}.scram-sha-512.sasl.jaas.config": SCRAM_LINE,
            f"{own}.oauthbearer.sasl.jaas.config": OAUTH_LINE,
            f"{own}.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
            f"{own}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": f"file://{tokens.keys}",
            f"{own}.oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
            f"{own}.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
        }
    return found
