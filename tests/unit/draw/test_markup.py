"""Escaping happens in one place, and nothing slips past it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.draw.markup import NOTHING, Markup, element, escaped, joined
from tests.unit.explain.html_reader import read


def test_text_and_attributes_are_escaped():
    made = element("a", "a < b & c", href='x"y', title="'")
    assert made == '<a href="x&quot;y" title="&#x27;">a &lt; b &amp; c</a>'


def test_markup_stays_as_it_is():
    assert element("p", element("b", "x"), NOTHING, None, "&") == "<p><b>x</b>&amp;</p>"
    assert joined(["<", Markup("<br>"), "x"], " & ") == "&lt; &amp; <br> &amp; x"


def test_attribute_names_and_flags():
    made = element("input", class_="a", data_path="b", hidden=True, disabled=False, title=None, tabindex=-1)
    assert made == '<input class="a" data-path="b" hidden tabindex="-1">'


def test_a_void_element_takes_no_content():
    with pytest.raises(AssertionError, match="no content"):
        element("br", "x")


@pytest.mark.parametrize(
    ("character", "shown"),
    [
        ("\x1b", "␛"),
        ("\x00", "␀"),
        ("\x7f", "␡"),
        ("\u202e", "\ufffd"),
        ("\u2066", "\ufffd"),
        ("\n", "\n"),
        ("\t", "\t"),
    ],
)
def test_what_would_play_tricks_is_shown(character: str, shown: str):
    assert escaped(f"a{character}b") == f"a{shown}b"


@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs", "Cf"])))
def test_any_text_comes_back_as_text(text: str):
    document = read(element("p", text, title=text))
    (paragraph,) = document.named("p")
    assert paragraph.text == text
    assert paragraph.attributes == {"title": text}
    assert paragraph.children in ([], [text])
