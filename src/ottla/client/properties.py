"""Settings by the names that Kafka's own clients have for them, so that one file serves the tools of both.

Files are shared between programs, so keys that mean nothing here are passed over, as Kafka's clients do. From
librdkafka come `sasl.username`, `sasl.password` and `ssl.ca.location`. Key and trust stores are PEM or PKCS#12; Java's
own format is refused with a way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.client.errors import ConfigurationError
from ottla.client.sasl import Sasl, mechanism_named
from ottla.client.settings import Changes
from ottla.security.errors import SecuritySettingError
from ottla.security.jaas import read_jaas
from ottla.security.tls import client_context

__all__ = ["settings_of"]

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


def settings_of(properties: Mapping[str, str]) -> Changes:
    """The settings that Kafka's properties stand for; ConfigurationError names the key of what cannot be."""
    try:
        return _settings(properties)
    except SecuritySettingError as error:
        raise ConfigurationError(str(error)) from None


def _settings(properties: Mapping[str, str]) -> Changes:
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
        settings["tls"] = client_context(properties)
    if has_sasl:
        settings["sasl"] = _sasl(properties)
    return settings


def _number(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigurationError(f"{key} is {text!r}, which is not a number") from None


def _protocol(properties: Mapping[str, str]) -> tuple[bool, bool]:
    protocol = properties.get("security.protocol", DEFAULT_PROTOCOL).upper()
    if protocol not in PROTOCOLS:
        raise ConfigurationError(f"security.protocol is {protocol!r}; it can be {', '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol]


# --- SASL -------------------------------------------------------------------------------------------------------------


def _sasl(properties: Mapping[str, str]) -> Sasl:
    mechanism = properties.get("sasl.mechanism")
    if mechanism is None:
        raise ConfigurationError("sasl.mechanism is not set, but security.protocol uses SASL")
    line = properties.get("sasl.jaas.config")
    options = {} if line is None else read_jaas("sasl.jaas.config", line).options
    if mechanism == "OAUTHBEARER":
        return _oauth(properties, options)
    username = properties.get("sasl.username", options.get("username"))
    password = properties.get("sasl.password", options.get("password"))
    if username is None or password is None:
        raise ConfigurationError("sasl.jaas.config has no username and password")
    is_token = options.get("tokenauth", "").lower() == "true"
    return mechanism_named(mechanism, username, password, is_token=is_token)


def _oauth(properties: Mapping[str, str], options: Mapping[str, str]) -> Sasl:
    # Late, as few need what it brings along.
    from ottla.client.oauth import ClientCredentials, OAuthBearer, token_function

    callback = properties.get("ottla.oauth.callback")
    if callback is not None:
        return OAuthBearer(token_function(callback))
    url = properties.get("sasl.oauthbearer.token.endpoint.url")
    if url is None:
        raise ConfigurationError("set sasl.oauthbearer.token.endpoint.url, or a function in ottla.oauth.callback")
    given = "sasl.oauthbearer.client.credentials.client"
    client_id = properties.get(f"{given}.id", options.get("clientId"))
    secret = properties.get(f"{given}.secret", options.get("clientSecret"))
    if client_id is None or secret is None:
        raise ConfigurationError(f"{given}.id and {given}.secret are not set, and are not in sasl.jaas.config either")
    return OAuthBearer(
        ClientCredentials(url, client_id, secret, properties.get("sasl.oauthbearer.scope", options.get("scope")))
    )
