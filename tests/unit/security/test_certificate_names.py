"""The names in certificates: the text that Java makes of them, and what may change when one is renewed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from ssl import PEM_cert_to_DER_cert

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.certificate_names import alternative_names, distinguished_name, subject_of
from ottla.security.errors import SecuritySettingError
from ottla.security.tls import check_renewal
from ottla.testing.certificates import CertificateAuthority


def name(*attributes: tuple[x509.ObjectIdentifier, str]) -> bytes:
    built = x509.Name([x509.NameAttribute(kind, text) for kind, text in attributes]).public_bytes()
    return built[2:] if built[1] < 0x80 else built[2 + (built[1] & 0x7F) :]


def test_the_last_part_comes_first():
    given = name((NameOID.COUNTRY_NAME, "CZ"), (NameOID.ORGANIZATION_NAME, "Ottla"), (NameOID.COMMON_NAME, "ann"))
    assert distinguished_name(given) == "CN=ann,O=Ottla,C=CZ"


def test_what_java_has_no_word_for_is_a_number_with_hexadecimal_bytes():
    given = name((NameOID.COMMON_NAME, "ann"), (NameOID.EMAIL_ADDRESS, "a@b.c"))
    assert distinguished_name(given) == "1.2.840.113549.1.9.1=#1605614062 2e63,CN=ann".replace(" ", "")


def test_special_letters_are_escaped():
    assert distinguished_name(name((NameOID.COMMON_NAME, ' a,b+"c" '))) == r"CN=\ a\,b\+\"c\"\ "


@given(st.binary(max_size=200))
def test_garbage_is_a_value_error(data: bytes):
    for read in (subject_of, distinguished_name, alternative_names):
        with suppress(ValueError):
            read(data)


def issue(authority: CertificateAuthority, name: str, hosts: Sequence[str]) -> bytes:
    pem = authority.issue(name, hosts=hosts).certificate.read_text()
    return PEM_cert_to_DER_cert(pem[: pem.index("-----END CERTIFICATE-----") + 25])


def test_alternative_names_with_their_kinds(tmp_path: Path):
    authority = CertificateAuthority(tmp_path)
    found = alternative_names(issue(authority, "broker", ["kafka.example", "127.0.0.1"]))
    assert {content for _, content in found} == {b"kafka.example", bytes((127, 0, 0, 1))}
    assert len({tag for tag, _ in found}) == 2
    assert alternative_names(issue(authority, "broker", [])) == frozenset()


@pytest.mark.parametrize(
    ("name", "hosts", "problem"),
    [
        ("broker", ["a.example"], None),
        ("broker", ["a.example", "b.example"], None),
        ("BROKER", ["a.example"], None),
        ("other", ["a.example"], r"is for CN=other, the one in use for CN=broker; set ssl\.allow\.dn\.changes=true"),
        ("broker", ["b.example"], r"lacks alternative names of the one in use; set ssl\.allow\.san\.changes=true"),
    ],
)
def test_a_renewed_certificate_keeps_its_names(tmp_path: Path, name: str, hosts: list[str], problem: str | None):
    authority = CertificateAuthority(tmp_path)
    before, after = issue(authority, "broker", ["a.example"]), issue(authority, name, hosts)
    with pytest.raises(SecuritySettingError, match=problem) if problem else nullcontext():
        check_renewal(before, after, allow_dn_changes=False, allow_san_changes=False)
    check_renewal(before, after, allow_dn_changes=True, allow_san_changes=True)
