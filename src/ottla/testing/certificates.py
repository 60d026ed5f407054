"""Certificates for tests: an authority, and what it issues, in files.

Needs the package cryptography (`pip install ottla[security]`). Keys are small and quick to make: nothing here is for
anything but a test.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

__all__ = ["CertificateAuthority", "Issued"]

LOCAL_HOSTS: Final = ("localhost", "127.0.0.1")
_A_DAY: Final = timedelta(days=1)


class Issued(NamedTuple):
    """A certificate and its key."""

    pem: Path
    """Key and certificate in one file, as `ssl.keystore.location` takes it."""
    certificate: Path
    key: Path


class CertificateAuthority:
    """Issues certificates for brokers and clients on this machine."""

    def __init__(self, directory: Path, name: str = "ottla test authority") -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._key = _new_key()
        self._certificate = _signed(name, self._key, None, self._key, (), timedelta(days=30), is_authority=True)
        self.file = directory / f"{name.replace(' ', '-')}.pem"
        """What clients have to trust."""
        self.file.write_bytes(_pem(self._certificate))

    def issue(self, name: str, *, hosts: Sequence[str] = LOCAL_HOSTS, valid_for: timedelta = 30 * _A_DAY) -> Issued:
        """A certificate; with a negative time it has expired."""
        key = _new_key()
        certificate = _signed(name, key, self._certificate, self._key, hosts, valid_for)
        stem = name.replace(" ", "-").replace("/", "-")
        issued = Issued(*(self.directory / f"{stem}.{suffix}" for suffix in ("pem", "crt", "key")))
        issued.key.touch(0o600)
        issued.pem.touch(0o600)
        issued.key.write_bytes(_key_pem(key))
        issued.certificate.write_bytes(_pem(certificate) + _pem(self._certificate))
        issued.pem.write_bytes(_key_pem(key) + _pem(certificate) + _pem(self._certificate))
        return issued


def _new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
    hosts: Sequence[str],
    valid_for: timedelta,
    *,
    is_authority: bool = False,
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _A_DAY + min(valid_for, timedelta()))
        .not_valid_after(now + valid_for)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if is_authority:
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        builder = builder.add_extension(usage, critical=True)
    if hosts:
        names = [_general_name(host) for host in hosts]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
