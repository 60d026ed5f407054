"""JAAS lines, and that an error never repeats a password."""

from __future__ import annotations

import pytest

from ottla.security.errors import SecuritySettingError
from ottla.security.jaas import read_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_a_line_of_a_broker():
    entry = read_jaas(
        "x", f'{PLAIN} required\n  username="admin" password="a b\\"c" user_ann="s;=3" user_bob=\'x\' flag=true;'
    )
    assert entry.module == PLAIN
    assert entry.options["password"] == 'a b"c'
    assert entry.options["flag"] == "true"
    assert entry.users == {"ann": "s;=3", "bob": "x"}


def test_the_semicolon_and_all_options_may_be_left_out():
    assert read_jaas("x", f"{PLAIN} required").options == {}


@pytest.mark.parametrize(
    "text", ["", PLAIN, f'{PLAIN} username="s3cret";', f'{PLAIN} required user="s3cret', f"{PLAIN} required s3cret;"]
)
def test_a_wrong_line_is_told_without_its_secrets(text: str):
    with pytest.raises(SecuritySettingError, match=r"listener\.name\.x") as error:
        read_jaas("listener.name.x", text)
    assert "s3cret" not in str(error.value)
