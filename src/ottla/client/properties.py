"""Settings by the names that Kafka's own clients have for them, so that one file serves the tools of both.

Files are shared between programs, so keys that mean nothing here are passed over, as Kafka's clients do. From
librdkafka come `sasl.username`, `sasl.password` and `ssl.ca.location`. Key and trust stores have to be PEM; Java's own
formats are refused with a way out.
"""

from __future__ import annotations

import re
import ssl
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

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
    username = properties.get("sasl.username", options.get("username"))
    password = properties.get("sasl.password", options.get("password"))
    if username is None or password is None:
        raise ConfigurationError("sasl.jaas.config names no username and password")
    return mechanism_named(mechanism, username, password)


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
    if path is not None:
        _check_pem("ssl.truststore", path, properties)
    context = _loaded("ssl.truststore", path, lambda: ssl.create_default_context(cafile=path, cadata=text))
    _load_own_certificate(context, properties)
    if not properties.get("ssl.endpoint.identification.algorithm", "https").strip():
        context.check_hostname = False
    return context


def _load_own_certificate(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    password = properties.get("ssl.key.password")
    store = properties.get("ssl.keystore.location")
    if store is not None:
        _check_pem("ssl.keystore", store, properties)
        _loaded("ssl.keystore", store, lambda: context.load_cert_chain(store, password=password))
    chain, key = properties.get("ssl.keystore.certificate.chain"), properties.get("ssl.keystore.key")
    if chain is not None and key is not None:
        # OpenSSL reads keys from files only.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(f"{key}\n{chain}\n")
            file.flush()
            name = file.name
            _loaded("ssl.keystore.key", None, lambda: context.load_cert_chain(name, password=password))


def _check_pem(store: str, path: str, properties: Mapping[str, str]) -> None:
    kind = properties.get(f"{store}.type", PEM if path.endswith((".pem", ".crt", ".cert", ".cer")) else "JKS")
    if kind.upper() != PEM:
        raise ConfigurationError(
            f"{store}.location is a {kind} store, which only Java reads; "
            f"export it as PEM (keytool and openssl can) and set {store}.type=PEM"
        )
    if not Path(path).is_file():
        raise ConfigurationError(f"{store}.location: there is no file {path}")


def _loaded(key: str, path: str | None, load: Callable[[], T]) -> T:
    try:
        return load()
    except (ssl.SSLError, OSError) as error:
        raise ConfigurationError(f"{key}: {path or 'the text'} cannot be used: {error}") from None
