"""Names from certificates: the text that Java makes of them, and the rules that shorten it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.errors import LoginRefused, SecuritySettingError
from ottla.security.principals import distinguished_name, mapping_rules, subject_of

SHORT = r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L,RULE:^.*[Cc][Nn]=(.*)$/$1/U,DEFAULT"


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
    for read in (subject_of, distinguished_name):
        with suppress(ValueError):
            read(data)


@pytest.mark.parametrize(
    ("dn", "user"),
    [
        ("CN=kafka1,OU=ServiceUsers,O=Unknown", "kafka1"),
        ("CN=Adm,OU=Team,O=Unknown", "adm@team"),
        ("O=x,cn=ann", "ANN"),
        ("O=x", "O=x"),
    ],
)
def test_the_first_rule_that_fits_counts(dn: str, user: str):
    assert mapping_rules(SHORT)(dn) == user


def test_without_a_rule_that_fits_nobody_is_let_in():
    with pytest.raises(LoginRefused, match="CN=ann"):
        mapping_rules("RULE:^CN=bob$/bob/")("CN=ann")


@pytest.mark.parametrize("text", ["RULE:abc", "RULE:(/x/", "NOTHING", "RULE:a/$3/", "DEFAULT RULE:a/b/"])
def test_wrong_rules_are_told(text: str):
    with pytest.raises(SecuritySettingError, match=r"ssl\.principal\.mapping\.rules"):
        mapping_rules(text)


def test_slashes_can_be_escaped():
    assert mapping_rules(r"RULE:^CN=(.*)\/(.*)$/$1-$2\/x/")("CN=a/b") == "a-b/x"
