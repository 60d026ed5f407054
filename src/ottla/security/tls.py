"""TLS contexts from Kafka's `ssl.*` settings, for both ends."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.security.certificate_names import alternative_names, distinguished_name, subject_of
from ottla.security.errors import SecuritySettingError
from ottla.security.stores import load_key_store, load_trust_store

__all__ = ["ServerTls", "check_renewal", "client_context", "server_tls"]

_VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_TLS_1_3_SUITES: Final = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})


class ServerTls(NamedTuple):
    context: ssl.SSLContext
    certificate: bytes
    """In DER."""
    notes: tuple[str, ...]
    """What cannot be done as the settings say it."""


def client_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """What a file or text trusts, if one is given, and else what the machine trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not load_trust_store(context, properties):
        context.load_default_certs()
    load_key_store(context, properties)
    _set_versions(context, properties)
    if not properties.get("ssl.endpoint.identification.algorithm", "https").strip():
        context.check_hostname = False
    return context


def server_tls(properties: Mapping[str, str]) -> ServerTls:
    """The context of a listener. SecuritySettingError if the settings cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate = load_key_store(context, properties)
    if certificate is None:
        raise SecuritySettingError("it has no certificate: set ssl.keystore.location (and ssl.keystore.type)")
    wanted = properties.get("ssl.client.auth", "none").strip()
    if wanted not in _CLIENT_AUTH:
        raise SecuritySettingError(f"ssl.client.auth is {wanted!r}; it is one of {', '.join(_CLIENT_AUTH)}")
    context.verify_mode = _CLIENT_AUTH[wanted]
    if context.verify_mode is not ssl.CERT_NONE and not load_trust_store(context, properties):
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    _set_versions(context, properties)
    return ServerTls(context, certificate, tuple(_set_suites(context, properties)))


def check_renewal(before: bytes, after: bytes, *, allow_dn_changes: bool, allow_san_changes: bool) -> None:
    """SecuritySettingError if the new certificate of a listener has another name, or lacks alternative names."""
    try:
        old_name, new_name = (distinguished_name(subject_of(each)) for each in (before, after))
        missing = alternative_names(before) - alternative_names(after)
    except ValueError as error:
        raise SecuritySettingError(f"the names of the certificate cannot be read: {error}") from None
    if not allow_dn_changes and old_name.casefold() != new_name.casefold():
        raise SecuritySettingError(
            f"the new certificate is for {new_name}, the one in use for {old_name}; "
            "set ssl.allow.dn.changes=true to allow it"
        )
    if not allow_san_changes and missing:
        raise SecuritySettingError(
            "the new certificate lacks alternative names of the one in use; set ssl.allow.san.changes=true to allow it"
        )


def _set_versions(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    names = [each.strip() for each in properties.get("ssl.enabled.protocols", "").split(",") if each.strip()]
    for name in names:
        if name not in _VERSIONS:
            raise SecuritySettingError(f"ssl.enabled.protocols has {name}; known: {', '.join(_VERSIONS)}")
    if names:
        wanted = sorted({_VERSIONS[name] for name in names})
        known = sorted(_VERSIONS.values())
        if known[known.index(wanted[0]) : known.index(wanted[-1]) + 1] != wanted:
            raise SecuritySettingError("ssl.enabled.protocols leaves out a version between two others")
        context.minimum_version, context.maximum_version = wanted[0], wanted[-1]
    else:
        context.minimum_version = ssl.TLSVersion.TLSv1_2


def _set_suites(context: ssl.SSLContext, properties: Mapping[str, str]) -> list[str]:
    """Offer these cipher suites; gives what cannot be done."""
    names = {each.strip() for each in properties.get("ssl.cipher.suites", "").split(",") if each.strip()}
    if not names:
        return []
    for_1_3 = {name for name in names if "_WITH_" not in name}
    if for_1_3 - _TLS_1_3_SUITES:
        raise SecuritySettingError(
            f"ssl.cipher.suites has {min(for_1_3 - _TLS_1_3_SUITES)}, which OpenSSL does not support"
        )
    before = names - for_1_3
    if before:
        try:
            context.set_ciphers(":".join(sorted(map(_openssl_name, before))))
        except ssl.SSLError:
            raise SecuritySettingError(
                f"ssl.cipher.suites has none that OpenSSL supports: {', '.join(sorted(before))}"
            ) from None
    else:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if not for_1_3:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    elif for_1_3 != _TLS_1_3_SUITES:
        left_out = ", ".join(sorted(_TLS_1_3_SUITES - for_1_3))
        return [f"ssl.cipher.suites: Python cannot choose among the suites of TLS 1.3; {left_out} are offered, too"]
    return []


def _openssl_name(name: str) -> str:
    """`ECDHE-RSA-AES128-GCM-SHA256` for Java's `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`."""
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    for long, short in (("AES_", "AES"), ("CAMELLIA_", "CAMELLIA"), ("_CBC", ""), ("POLY1305_SHA256", "POLY1305")):
        cipher = cipher.replace(long, short)
    parts = [] if exchange == "RSA" else [exchange]
    return "-".join((*parts, cipher)).replace("_", "-")
