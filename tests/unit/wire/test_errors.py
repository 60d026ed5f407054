"""The error table against Kafka's own, and its texts against being empty words."""

import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest

from ottla.wire import errors
from ottla.wire.errors import ErrorCode

GOLDEN = Path(__file__).parents[2] / "golden" / "wire" / "errors.json"


def golden_rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(GOLDEN.read_text())
    return rows


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{3,}", text.lower()))


def test_table_is_kafkas_own():
    ours = [
        {"name": error.name, "code": int(error), "retriable": error.retriable, "exception": error.exception}
        for error in ErrorCode
    ]
    assert ours == golden_rows()


def test_codes_have_no_holes():
    assert [int(error) for error in ErrorCode] == list(range(-1, 137))


@pytest.mark.parametrize("row", golden_rows(), ids=lambda row: row["name"])
def test_found_by_code_and_by_name(row: dict[str, Any]):
    assert errors.by_code(row["code"]) is errors.by_name(row["name"])
    assert errors.by_code(row["code"]).name == row["name"]


def test_texts_are_those_of_the_table_in_its_order():
    text = GOLDEN.parents[3].joinpath("src/ottla/wire/errors.txt").read_text()
    assert list(errors.parse_texts(text)) == [row["name"] for row in golden_rows()]


def test_text_file_is_labelled_throughout():
    text = GOLDEN.parents[3].joinpath("src/ottla/wire/errors.txt").read_text()
    assert text.count("\n  means: ") == text.count("\n  do: ") == len(ErrorCode)


def test_a_block_with_a_line_missing_is_refused():
    with pytest.raises(ValueError, match="argument"):
        errors.parse_texts("NONE\n  means: well\n")


@pytest.mark.parametrize("error", ErrorCode, ids=lambda error: error.name)
def test_texts_say_more_than_the_name(error: ErrorCode):
    name_words = words(error.name.replace("_", " "))
    for text in (error.meaning, error.remedy):
        assert text == text.strip()
        assert text.endswith(".")
        assert len(words(text) - name_words) >= 4, text
    assert error.meaning != error.remedy


def test_no_text_is_used_twice():
    texts = [text for error in ErrorCode for text in (error.meaning, error.remedy)]
    assert len(set(texts)) == len(texts)


def test_texts_are_one_or_two_sentences():
    def sentences(text: str) -> int:
        return len(re.findall(r"[.?!](?= [A-Z])|\.$", text))

    long = [error.name for error in ErrorCode if max(sentences(error.meaning), sentences(error.remedy)) > 2]
    assert long == []


@pytest.mark.parametrize("error", [error for error in ErrorCode if error.retriable], ids=lambda error: error.name)
def test_remedy_of_a_retriable_error_is_to_try_again(error: ErrorCode):
    assert re.search(r"\b(retry|refresh)\b", error.remedy, re.IGNORECASE), error.remedy


def test_an_error_that_points_to_another_names_one_that_exists():
    mentioned = {
        name for error in ErrorCode for name in re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", error.meaning + error.remedy)
    }
    not_errors = {"CREATE_TOKENS", "STALE_TOPOLOGY"}  # an ACL operation, a status of streams groups
    assert mentioned - not_errors <= set(ErrorCode.__members__)
    assert mentioned >= not_errors


def test_is_a_number_on_the_wire():
    assert struct.pack(">h", ErrorCode.FENCED_LEADER_EPOCH) == b"\x00\x4a"
    assert int(ErrorCode.FENCED_LEADER_EPOCH) == 74


@pytest.mark.parametrize(
    ("code", "nearest"), [(137, "136 (CONTROLLER_ID_NOT_REGISTERED)"), (-2, "-1 (UNKNOWN_SERVER_ERROR)")]
)
def test_unknown_code_names_the_nearest(code: int, nearest: str):
    with pytest.raises(ValueError, match=re.escape(f"code {code}; the nearest is {nearest}")):
        errors.by_code(code)


def test_a_code_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="no Kafka error has the code 'NONE'"):
        ErrorCode("NONE")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("NOT_LEADER_FOR_PARTITION", "NOT_LEADER_OR_FOLLOWER"),
        ("fenced_leader_epoch", "FENCED_LEADER_EPOCH"),
        ("UNKNOWN_TOPIC_ID_", "UNKNOWN_TOPIC_ID"),
    ],
)
def test_unknown_name_gives_the_nearest(name: str, nearest: str):
    with pytest.raises(ValueError, match=f"name '{name}'; the nearest is {nearest}$"):
        errors.by_name(name)


def test_any_unknown_name_gets_an_answer():
    with pytest.raises(ValueError, match="the nearest is"):
        errors.by_name("")
