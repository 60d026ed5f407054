"""How connections to one listener are secured: its TLS, its SASL mechanisms, and who its users are.

Settings of a listener stand under `listener.name.<name>.`, those of one of its mechanisms under
`listener.name.<name>.<mechanism>.`; what is not there is taken from the settings of all listeners. A listener gets a
new `ListenerSecurity` when its settings or its files change; connections that are there keep theirs.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from ottla.broker.config.node_config import ConfigError, ListenerConfig
from ottla.core.metadata.config_defs import broker_defs
from ottla.core.metadata.config_rules import LISTENER_PREFIX
from ottla.security.certificate_names import distinguished_name, subject_of
from ottla.security.errors import SecuritySettingError
from ottla.security.jaas import JaasEntry, read_jaas
from ottla.security.principals import mapping_rules
from ottla.security.sasl_server import (
    Mechanism,
    OAuthBearerServer,
    PlainServer,
    ScramCredential,
    ScramServer,
    TokenLogin,
)
from ottla.security.scram_messages import HASHES
from ottla.security.tls import ServerTls, check_renewal, server_tls
from ottla.wire.access import ANONYMOUS

__all__ = ["Credentials", "ListenerSecurity", "ListenerSettings", "listener_security", "listener_tls"]

_UNSECURED: Final = "OAuthBearerUnsecuredValidatorCallbackHandler"
_SECURED: Final = "OAuthBearerValidatorCallbackHandler"
_CLIENT_AUTH: Final = "ssl.client.auth"


class Credentials(Protocol):
    """Where mechanisms find users, keys and what else they need."""

    def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None: ...
    def token_login(self, mechanism: str, token_id: str) -> TokenLogin | None: ...
    def signing_key(self, url: str, key_id: str | None) -> Any:  # noqa: ANN401
        """The key of an issuer, by the address of its keys; None if it is not known (yet)."""

    def watch_keys(self, url: str, settings: ListenerSettings) -> None:
        """Keep the keys of an issuer at hand from now on."""

    def nonce(self) -> str: ...
    @property
    def salting(self) -> bytes:
        """A secret of this node."""

    def wall_ms(self) -> int: ...


class ListenerSettings:
    """The settings of one listener, or of one of its mechanisms."""

    def __init__(self, settings: Mapping[str, str], listener: str, mechanism: str | None = None) -> None:
        self._settings = settings
        self._prefixes = [f"{LISTENER_PREFIX}{listener.lower()}.", ""]
        if mechanism is not None:
            self._prefixes[:0] = [f"{prefix}{mechanism.lower()}." for prefix in self._prefixes]

    def text(self, name: str) -> str | None:
        """What was set, if anything."""
        return next(
            (self._settings[prefix + name] for prefix in self._prefixes if prefix + name in self._settings), None
        )

    def name_of(self, name: str) -> str:
        """The full name under which a setting stands, or should."""
        found = next((prefix + name for prefix in self._prefixes if prefix + name in self._settings), None)
        return found or self._prefixes[0] + name

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        key = broker_defs()[name]
        text = self.text(name)
        return key.parse(key.default if text is None else text)

    def tls(self) -> dict[str, str]:
        """The `ssl.*` settings that were made."""
        names = [name for name in broker_defs() if name.startswith("ssl.")]
        return {name: text for name in names if (text := self.text(name)) is not None}

    def tls_of(self, listener: ListenerConfig) -> dict[str, str]:
        """The same for this end of a listener. Whoever logs in needs a certificate only if the listener asks for it by
        a setting of its own."""
        found = self.tls()
        if listener.has_sasl and self._prefixes[0] + _CLIENT_AUTH not in self._settings:
            found[_CLIENT_AUTH] = "none"
        return found


class ListenerSecurity(NamedTuple):
    tls: ssl.SSLContext | None = None
    certificate: bytes | None = None
    """What the listener shows, in DER."""
    user_of: Callable[[str], str] = mapping_rules("DEFAULT")
    mechanisms: Mapping[str, Mechanism] = {}
    """By name; empty without SASL."""
    max_reauth_ms: Mapping[str, int] = {}
    max_receive_bytes: int = 524_288
    failure_delay_ms: int = 100
    wall_ms: Callable[[], int] = lambda: 0
    notes: tuple[str, ...] = ()

    @property
    def knows_clients(self) -> bool:
        """Whether nobody gets in unknown."""
        return bool(self.mechanisms) or (self.tls is not None and self.tls.verify_mode is ssl.CERT_REQUIRED)

    def principal_of(self, certificate: bytes | None) -> str:
        """Who a client is by its certificate. LoginRefused if no rule fits."""
        if certificate is None:
            return ANONYMOUS
        return f"User:{self.user_of(distinguished_name(subject_of(certificate)))}"


PLAINTEXT: Final = ListenerSecurity()


def listener_security(
    listener: ListenerConfig,
    settings: Mapping[str, str],
    credentials: Credentials,
    before: ListenerSecurity | None = None,
) -> ListenerSecurity:
    """What the settings say of a listener, after what was in force `before`.

    ConfigError names the listener and what is wrong.
    """
    own = ListenerSettings(settings, listener.name)
    tls = listener_tls(listener, settings, before)
    try:
        mechanisms = _mechanisms(listener, own, settings, credentials) if listener.has_sasl else {}
        return ListenerSecurity(
            tls=None if tls is None else tls.context,
            certificate=None if tls is None else tls.certificate,
            user_of=mapping_rules(own["ssl.principal.mapping.rules"]),
            mechanisms=mechanisms,
            max_reauth_ms={
                name: ListenerSettings(settings, listener.name, name)["connections.max.reauth.ms"]
                for name in mechanisms
            },
            max_receive_bytes=own["sasl.server.max.receive.size"],
            failure_delay_ms=own["connection.failed.authentication.delay.ms"],
            wall_ms=credentials.wall_ms,
            notes=() if tls is None else tls.notes,
        )
    except SecuritySettingError as error:
        raise ConfigError(f"listener {listener.name}: {error}") from None


def listener_tls(
    listener: ListenerConfig, settings: Mapping[str, str], before: ListenerSecurity | None
) -> ServerTls | None:
    """The TLS of a listener, if it has any; ConfigError if the settings or the files that they name cannot be used."""
    if not listener.has_tls:
        return None
    own = ListenerSettings(settings, listener.name)
    try:
        tls = server_tls(own.tls_of(listener))
        if before is not None and before.certificate is not None:
            check_renewal(
                before.certificate,
                tls.certificate,
                allow_dn_changes=own["ssl.allow.dn.changes"],
                allow_san_changes=own["ssl.allow.san.changes"],
            )
    except SecuritySettingError as error:
        raise ConfigError(f"listener {listener.name}: {error}") from None
    return tls


def _mechanisms(
    listener: ListenerConfig, own: ListenerSettings, settings: Mapping[str, str], credentials: Credentials
) -> dict[str, Mechanism]:
    found: dict[str, Mechanism] = {}
    for name in own["sasl.enabled.mechanisms"]:
        of_mechanism = ListenerSettings(settings, listener.name, name)
        if name == PlainServer.name:
            found[name] = PlainServer(_jaas(of_mechanism, name).users)
        elif name in HASHES:
            found[name] = _scram(name, credentials)
        elif name == OAuthBearerServer.name:
            found[name] = OAuthBearerServer(_validator(of_mechanism, credentials))
        else:
            known = ", ".join((PlainServer.name, *HASHES, OAuthBearerServer.name))
            why = "Kerberos (GSSAPI) is not supported" if name == "GSSAPI" else f"{name} is unknown"
            raise SecuritySettingError(f"{why}; set {own.name_of('sasl.enabled.mechanisms')} to one or more of {known}")
    return found


def _jaas(settings: ListenerSettings, mechanism: str) -> JaasEntry:
    name = settings.name_of("sasl.jaas.config")
    text = settings.text("sasl.jaas.config")
    if text is None:
        raise SecuritySettingError(f"{mechanism} has no users: set {name}")
    return read_jaas(name, text)


def _scram(name: str, credentials: Credentials) -> ScramServer:
    return ScramServer(
        name,
        lambda user: credentials.scram_credential(name, user),
        credentials.token_login,
        nonce=credentials.nonce,
        salting=credentials.salting,
    )


def _validator(settings: ListenerSettings, credentials: Credentials) -> Callable[[str], Any]:
    from ottla.security.jwt import JwtValidator, UnsecuredValidator

    handler = settings.text("sasl.server.callback.handler.class")
    url = settings["sasl.oauthbearer.jwks.endpoint.url"]
    if handler is not None and handler.endswith(_UNSECURED):
        text = settings.text("sasl.jaas.config")
        options = {} if text is None else read_jaas(settings.name_of("sasl.jaas.config"), text).options
        return UnsecuredValidator(options, now_ms=credentials.wall_ms)
    if handler is not None and not handler.endswith(_SECURED):
        raise SecuritySettingError(
            f"{settings.name_of('sasl.server.callback.handler.class')} is {handler}, a Java class, which cannot run "
            f"here; leave it out, or name {_SECURED}"
        )
    if url is None:
        name = settings.name_of("sasl.oauthbearer.jwks.endpoint.url")
        raise SecuritySettingError(f"OAUTHBEARER needs keys to verify tokens: set {name}")
    credentials.watch_keys(url, settings)
    return JwtValidator(
        lambda key_id: credentials.signing_key(url, key_id),
        now_ms=credentials.wall_ms,
        issuer=settings["sasl.oauthbearer.expected.issuer"],
        audiences=settings["sasl.oauthbearer.expected.audience"],
        skew_s=settings["sasl.oauthbearer.clock.skew.seconds"],
        scope_claim=settings["sasl.oauthbearer.scope.claim.name"],
        sub_claim=settings["sasl.oauthbearer.sub.claim.name"],
    )
