"""Settings by the names that Kafka's own clients have for them, so that one file serves the tools of both.

Files are shared between programs, so keys that mean nothing here are passed over, as Kafka's clients do. From
librdkafka come `sasl.username`, `sasl.password` and `ssl.ca.location`. Key and trust stores are PEM or PKCS#12; Java's
own format is refused with a way out.
"""

from __future__ import annotations

import re
import ssl
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from ottla.client.errors import ConfigurationError
from ottla.client.sasl import Sasl, mechanism_named
from ottla.client.settings import Changes

__all__ = ["settings_of"]

T = TypeVar("T")

NUMBERS: Final = {
    "request.timeout.ms": "request_timeout_ms",
    "default.api.timeout.ms": "default_api_timeout_ms",
    "socket.connection.setup.timeout.ms": "connect_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "connections.max.idle.ms": "connections_max_idle_ms",
    "max.in.flight.requests.per.connection": "max_in_flight",
}
"""Kafka's names of settings that are numbers, and ours."""
PROTOCOLS: Final = {
    "PLAINTEXT": (False, False),
    "SSL": (True, False),
    "SASL_PLAINTEXT": (False, True),
    "SASL_SSL": (True, True),
}
"""Whether a security.protocol has TLS and SASL."""
DEFAULT_PROTOCOL: Final = "PLAINTEXT"
PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
_JAAS_OPTION: Final = re.compile(r'([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([^\s;"\']+))')


def settings_of(properties: Mapping[str, str]) -> Changes:
    """The settings that Kafka's properties stand for; ConfigurationError names the key of what cannot be."""
    settings: Changes = {}
    for key, name in NUMBERS.items():
        if key in properties:
            settings[name] = _number(key, properties[key])  # type: ignore[literal-required]
    if "client.id" in properties:
        settings["client_id"] = properties["client.id"]
    if "allow.auto.create.topics" in properties:
        settings["allow_auto_create_topics"] = properties["allow.auto.create.topics"].strip().lower() == "true"
    has_tls, has_sasl = _protocol(properties)
    if has_tls:
        settings["tls"] = _tls(properties)
    if has_sasl:
        settings["sasl"] = _sasl(properties)
    return settings


def _number(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigurationError(f"{key} is {text!r}, which is no number") from None


def _protocol(properties: Mapping[str, str]) -> tuple[bool, bool]:
    protocol = properties.get("security.protocol", DEFAULT_PROTOCOL).upper()
    if protocol not in PROTOCOLS:
        raise ConfigurationError(f"security.protocol is {protocol!r}; it can be {', '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol]


# --- SASL -------------------------------------------------------------------------------------------------------------


def _sasl(properties: Mapping[str, str]) -> Sasl:
    mechanism = properties.get("sasl.mechanism")
    if mechanism is None:
        raise ConfigurationError("sasl.mechanism is not set; security.protocol asks for SASL")
    options = _jaas_options(properties.get("sasl.jaas.config", ""))
    if mechanism == "OAUTHBEARER":
        return _oauth(properties, options)
    username = properties.get("sasl.username", options.get("username"))
    password = properties.get("sasl.password", options.get("password"))
    if username is None or password is None:
        raise ConfigurationError("sasl.jaas.config names no username and password")
    return mechanism_named(mechanism, username, password)


def _oauth(properties: Mapping[str, str], options: Mapping[str, str]) -> Sasl:
    # Late, as few need what it brings along.
    from ottla.client.oauth import ClientCredentials, OAuthBearer, token_function

    callback = properties.get("ottla.oauth.callback")
    if callback is not None:
        return OAuthBearer(token_function(callback))
    url = properties.get("sasl.oauthbearer.token.endpoint.url")
    if url is None:
        raise ConfigurationError(
            "sasl.oauthbearer.token.endpoint.url is not set; or name a function in ottla.oauth.callback"
        )
    given = "sasl.oauthbearer.client.credentials.client"
    client_id = properties.get(f"{given}.id", options.get("clientId"))
    secret = properties.get(f"{given}.secret", options.get("clientSecret"))
    if client_id is None or secret is None:
        raise ConfigurationError(f"{given}.id and {given}.secret are not set, and sasl.jaas.config does not have them")
    return OAuthBearer(
        ClientCredentials(url, client_id, secret, properties.get("sasl.oauthbearer.scope", options.get("scope")))
    )


def _jaas_options(text: str) -> dict[str, str]:
    """The options in `org.apache...LoginModule required username="..." password="...";`."""
    found = {}
    for match in _JAAS_OPTION.finditer(text):
        name, *values = match.groups()
        value = next(each for each in values if each is not None)
        found[name] = value if values[2] is not None else re.sub(r"\\(.)", r"\1", value)
    return found


# --- TLS --------------------------------------------------------------------------------------------------------------


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    """What a file or text trusts, if one is given, and else what the machine trusts."""
    path = properties.get("ssl.truststore.location", properties.get("ssl.ca.location"))
    text = properties.get("ssl.truststore.certificates")
    if path is not None and _is_pkcs12("ssl.truststore", path, properties):
        text, path = _opened("ssl.truststore", path, properties).certificates, None
    context = _loaded("ssl.truststore", path, lambda: ssl.create_default_context(cafile=path, cadata=text))
    _load_own_certificate(context, properties)
    if not properties.get("ssl.endpoint.identification.algorithm", "https").strip():
        context.check_hostname = False
    return context


def _load_own_certificate(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    password = properties.get("ssl.key.password")
    store = properties.get("ssl.keystore.location")
    chain, key = properties.get("ssl.keystore.certificate.chain"), properties.get("ssl.keystore.key")
    if store is not None and _is_pkcs12("ssl.keystore", store, properties):
        opened = _opened("ssl.keystore", store, properties)
        chain, key, password = opened.certificates, opened.key, None
    elif store is not None:
        _loaded("ssl.keystore", store, lambda: context.load_cert_chain(store, password=password))
    if chain is not None and key is not None:
        # OpenSSL reads keys from files only.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(f"{key}\n{chain}\n")
            file.flush()
            name = file.name
            _loaded("ssl.keystore.key", None, lambda: context.load_cert_chain(name, password=password))


def _is_pkcs12(store: str, path: str, properties: Mapping[str, str]) -> bool:
    """Which of the two formats a file has; ConfigurationError for others, and if there is no file."""
    kind = properties.get(f"{store}.type") or _kind_by_name(path)
    if kind.upper() not in (PEM, PKCS12):
        raise ConfigurationError(
            f"{store}.location is a {kind} store, which only Java reads; convert it by `keytool -importkeystore "
            f"-srckeystore {path} -destkeystore store.p12 -deststoretype PKCS12` and set {store}.type=PKCS12"
        )
    if not Path(path).is_file():
        raise ConfigurationError(f"{store}.location: there is no file {path}")
    return kind.upper() == PKCS12


def _kind_by_name(path: str) -> str:
    if path.endswith((".pem", ".crt", ".cert", ".cer")):
        return PEM
    return PKCS12 if path.endswith((".p12", ".pfx")) else "JKS"


class _Opened(NamedTuple):
    """What a PKCS#12 store holds, as PEM."""

    key: str | None
    certificates: str


def _opened(store: str, path: str, properties: Mapping[str, str]) -> _Opened:
    password = properties.get(f"{store}.password", "")
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise ConfigurationError(
            f"{store}.location: PKCS#12 needs the package cryptography (`pip install ottla[pkcs12]`); "
            f"or convert it by `openssl pkcs12 -in {path} -out store.pem -nodes` and set {store}.type=PEM"
        ) from None
    try:
        found = pkcs12.load_pkcs12(Path(path).read_bytes(), password.encode())
    except (OSError, ValueError):
        raise ConfigurationError(f"{store}.location: {path} cannot be opened with {store}.password") from None
    held = [each.certificate for each in ([found.cert] if found.cert else []) + found.additional_certs]
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    key = found.key and found.key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain).decode()
    return _Opened(key or None, "".join(each.public_bytes(pem).decode() for each in held))


def _loaded(key: str, path: str | None, load: Callable[[], T]) -> T:
    try:
        return load()
    except (ssl.SSLError, OSError) as error:
        raise ConfigurationError(f"{key}: {path or 'the text'} cannot be used: {error}") from None
