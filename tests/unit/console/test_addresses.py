"""Names in paths: whatever a name is, it comes back as it was, and never looks like a twin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.console.addresses import NotANameError, decode_name, href


@given(st.text())
def test_names_come_back(name: str):
    written = href(name)
    assert decode_name(written.removeprefix("/")) == name
    assert not written.endswith(".json")
    assert set(written.removeprefix("/")) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-~")


@pytest.mark.parametrize("text", ["a.json", "~", "~2", "~2e", "~zz", "a b", "ü", "~FF", "%41"])
def test_what_nobody_writes_is_refused(text: str):
    with pytest.raises(NotANameError):
        decode_name(text)
