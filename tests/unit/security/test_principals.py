"""The rules that make a user of the name in a certificate."""

from __future__ import annotations

import pytest

from ottla.security.errors import LoginRefused, SecuritySettingError
from ottla.security.principals import mapping_rules

SHORT = r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L,RULE:^.*[Cc][Nn]=(.*)$/$1/U,DEFAULT"


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
