"""Key stores and trust stores, as Kafka's `ssl.*` settings name them: PEM files, PEM texts and PKCS#12.

Java's own format (JKS) is refused with the command that converts it. OpenSSL reads keys from files only, so that what
is given as text goes through a file in memory, or where there are none through one that only this user can read.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from ottla.security.errors import SecuritySettingError

__all__ = ["load_key_store", "load_trust_store", "store_files"]

T = TypeVar("T")
Properties = Mapping[str, str]
PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
_CERTIFICATE: Final = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def store_files(properties: Properties) -> list[str]:
    """The files that settings name, whose change is a change of the settings."""
    names = ("ssl.keystore.location", "ssl.truststore.location")
    return [properties[name] for name in names if properties.get(name)]


def load_trust_store(context: ssl.SSLContext, properties: Properties) -> bool:
    """Trust what a file or text says; False if neither is given."""
    path = properties.get("ssl.truststore.location") or properties.get("ssl.ca.location") or None
    text = properties.get("ssl.truststore.certificates")
    if path is not None and _is_pkcs12("ssl.truststore", path, properties):
        text, path = _opened("ssl.truststore", path, properties).certificates, None
    if path is None and text is None:
        return False
    _loaded("ssl.truststore", path, lambda: context.load_verify_locations(cafile=path, cadata=text))
    return True


def load_key_store(context: ssl.SSLContext, properties: Properties) -> bytes | None:
    """Take the certificate and key that settings name. Gives the certificate in DER; None if they name none."""
    password = properties.get("ssl.key.password")
    store = properties.get("ssl.keystore.location") or None
    chain, key = properties.get("ssl.keystore.certificate.chain"), properties.get("ssl.keystore.key")
    if store is not None and _is_pkcs12("ssl.keystore", store, properties):
        opened = _opened("ssl.keystore", store, properties)
        chain, key, password = opened.certificates, opened.key, None
    elif store is not None:
        _loaded("ssl.keystore", store, lambda: context.load_cert_chain(store, password=password or ""))
        return _first_certificate(Path(store).read_text(errors="replace"))
    if chain is None and key is None:
        return None
    if chain is None or key is None:
        missing = "ssl.keystore.certificate.chain" if chain is None else "ssl.keystore.key"
        raise SecuritySettingError(f"{missing} is not set; a certificate and its key go together")
    with _file_of(f"{key}\n{chain}\n") as name:
        _loaded("ssl.keystore.key", None, lambda: context.load_cert_chain(name, password=password or ""))
    return _first_certificate(chain)


def _first_certificate(pem: str) -> bytes:
    """The first certificate is the holder's own; those of its issuers follow."""
    found = _CERTIFICATE.search(pem)
    if found is None:
        raise SecuritySettingError("ssl.keystore has no certificate that begins with -----BEGIN CERTIFICATE-----")
    return ssl.PEM_cert_to_DER_cert(found[0])


@contextmanager
def _file_of(text: str) -> Iterator[str]:
    """A file with a secret text."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        number = os.memfd_create("key")
        try:
            os.write(number, text.encode())
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
    else:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(text)
            file.flush()
            yield file.name


def _is_pkcs12(store: str, path: str, properties: Properties) -> bool:
    """Which of the two formats a file has; SecuritySettingError for others, and if there is no file."""
    kind = properties.get(f"{store}.type") or _kind_by_name(path)
    if kind.upper() not in (PEM, PKCS12):
        raise SecuritySettingError(
            f"{store}.location is a {kind} store, which only Java can read; convert it with `keytool -importkeystore "
            f"-srckeystore {path} -destkeystore store.p12 -deststoretype PKCS12` and set {store}.type=PKCS12"
        )
    if not Path(path).is_file():
        raise SecuritySettingError(f"{store}.location: {path} does not exist")
    return kind.upper() == PKCS12


def _kind_by_name(path: str) -> str:
    if path.endswith((".pem", ".crt", ".cert", ".cer")):
        return PEM
    return PKCS12 if path.endswith((".p12", ".pfx")) else "JKS"


class _Opened(NamedTuple):
    """What a PKCS#12 store holds, as PEM."""

    key: str | None
    certificates: str


def _opened(store: str, path: str, properties: Properties) -> _Opened:
    password = properties.get(f"{store}.password", "")
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise SecuritySettingError(
            f"{store}.location: PKCS#12 needs the package cryptography (`pip install ottla[security]`); "
            f"or convert it with `openssl pkcs12 -in {path} -out store.pem -nodes` and set {store}.type=PEM"
        ) from None
    try:
        found = pkcs12.load_pkcs12(Path(path).read_bytes(), password.encode())
    except (OSError, ValueError):
        raise SecuritySettingError(f"{store}.location: {path} cannot be opened with {store}.password") from None
    held = [each.certificate for each in ([found.cert] if found.cert else []) + found.additional_certs]
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    key = found.key and found.key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain).decode()
    return _Opened(key or None, "".join(each.public_bytes(pem).decode() for each in held))


def _loaded(key: str, path: str | None, load: Callable[[], T]) -> T:
    try:
        return load()
    except (ssl.SSLError, OSError) as error:
        raise SecuritySettingError(f"{key}: {path or 'the text'} cannot be used: {error}") from None
