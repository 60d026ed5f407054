"""Lines, wrapping and columns."""

import json

from hypothesis import given
from hypothesis import strategies as st

from ottla.explain.render.lines import Line, Styled, columns, hanging_indent, json_lines, width_of, wrapped


def text_of(lines: list[Line]) -> list[str]:
    return ["".join(piece.text for piece in line) for line in lines]


def test_words_are_wrapped():
    assert text_of(wrapped([Styled("one two three four")], 9)) == ["one two", "three", "four"]


def test_a_word_that_is_too_long_is_cut():
    assert text_of(wrapped([Styled("a bcdefghijklmnop q")], 8)) == ["a", "bcdefghi", "jklmnop", "q"]


def test_styles_stay_with_their_words():
    (line,) = wrapped([Styled("a ", "x"), Styled("b", "y")], 20)
    assert line == [Styled("a", "x"), Styled(" ", "x"), Styled("b", "y")]
    assert wrapped([Styled("abcdef", "x"), Styled("ghijkl", "y")], 8) == [
        [Styled("abcdef", "x"), Styled("gh", "y")],
        [Styled("ijkl", "y")],
    ]


def test_what_has_no_space_before_it_stays():
    assert text_of(wrapped([Styled("after "), Styled("Fetch", "link"), Styled(", or")], 12)) == ["after Fetch,", "or"]
    assert text_of(wrapped([Styled("after a "), Styled("Fetch", "link"), Styled(", or")], 13)) == [
        "after a",
        "Fetch, or",
    ]


def test_a_paragraph_hangs_from_its_head():
    assert text_of(hanging_indent([Styled("For")], [Styled("one two three")], 14, 5)) == ["For  one two", "     three"]
    assert text_of(hanging_indent([Styled("too long")], [Styled("one")], 14, 5)) == ["too long", "     one"]


def test_columns_stand_below_each_other():
    cells = [[[[Styled("a")]], [[Styled("b")], [Styled("c")]]]]
    assert text_of(columns(cells, [3, 5])) == ["a    b", "     c"]


@given(st.lists(st.text(alphabet="ab ", max_size=30), max_size=8), st.integers(8, 40))
def test_no_line_is_wider_than_asked(parts: list[str], width: int):
    lines = wrapped([Styled(part) for part in parts], width)
    assert all(width_of(line) <= width for line in lines)
    assert "".join("".join(parts).split()) == "".join("".join(text_of(lines)).split())
    if all(len(word) <= width for word in "".join(parts).split()):
        assert "".join(parts).split() == " ".join(text_of(lines)).split()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="abc", max_size=60),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet="xyz", min_size=1), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.integers(60, 120))
def test_json_stays_json_and_in_its_width(value: object, width: int):
    lines = json_lines(value, width)
    assert all(width_of(line) <= width for line in lines)
    if not any("\\" in text for text in text_of(lines)):
        # A long text goes on in the next line, behind its indent.
        assert json.loads("".join(text.strip() for text in text_of(lines))) == value


def test_small_json_stays_on_one_line():
    assert text_of(json_lines({"a": [1, 2], "b": None}, 40)) == ['{"a": [1, 2], "b": null}']
    assert text_of(json_lines({"a": [1, 2], "b": "x" * 20}, 24)) == [
        "{",
        '  "a": [1, 2],',
        '  "b":',
        '  "' + "x" * 20 + '"',
        "}",
    ]
