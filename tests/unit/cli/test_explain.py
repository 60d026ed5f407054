"""`ottla explain` from the outside."""

import json

import pytest

from ottla.cli import run


def output(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["explain", *arguments]) == 0
    return capsys.readouterr().out


def test_a_page_on_the_terminal(capsys: pytest.CaptureFixture[str]):
    text = output(["StreamsGroupHeartbeat", "0", "response"], capsys)
    assert text.startswith("── StreamsGroupHeartbeatResponse v0 ──")
    assert "\x1b[" not in text, "no colours where there is no terminal"
    assert max(map(len, text.splitlines())) <= 100


def test_request_and_response_one_after_the_other(capsys: pytest.CaptureFixture[str]):
    text = output(["sharefetch", "2"], capsys)
    assert text.index("── ShareFetchRequest v2") < text.index("── ShareFetchResponse v2")


def test_the_width_can_be_chosen(capsys: pytest.CaptureFixture[str]):
    text = output(["StreamsGroupMetadataValue", "--width", "60"], capsys)
    assert 50 < max(map(len, text.splitlines())) <= 60


def test_json(capsys: pytest.CaptureFixture[str]):
    [page] = json.loads(output(["ShareFetch", "2", "request", "--json"], capsys))["rows"]
    assert page["title"] == "ShareFetchRequest v2"
    assert len(json.loads(output(["ShareFetch", "--json"], capsys))["rows"]) == 2


def test_markdown(capsys: pytest.CaptureFixture[str]):
    assert output(["TopicRecord", "--markdown"], capsys).startswith("# TopicRecord v0\n")


def test_html(capsys: pytest.CaptureFixture[str]):
    text = output(["ShareFetch", "2", "--html"], capsys)
    assert text.startswith("<!doctype html>")
    assert text.index("ShareFetchRequest v2") < text.rindex("ShareFetchResponse v2")


@pytest.mark.parametrize("arguments", [["FENCED_MEMBER_EPOCH"], ["error", "110"], ["--error", "110"]])
def test_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert output(arguments, capsys).startswith("── FENCED_MEMBER_EPOCH (110) ──")


@pytest.mark.parametrize("arguments", [["error", "-1"], ["--width", "80", "error", "-1"], ["--error", "-1"]])
def test_the_code_of_an_error_may_be_negative(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert output(arguments, capsys).startswith("── UNKNOWN_SERVER_ERROR (-1) ──")


def test_a_negative_code(capsys: pytest.CaptureFixture[str]):
    assert output(["--error", "-1"], capsys).startswith("── UNKNOWN_SERVER_ERROR (-1) ──")


@pytest.mark.parametrize("arguments", [[], ["--list"]])
def test_alone_it_lists_what_there_is(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    text = output(arguments, capsys)
    for name in ("ShareFetch", "StreamsGroupMetadataValue", "RequestHeader", "FENCED_MEMBER_EPOCH"):
        assert name in text


def test_the_list_as_json_and_markdown(capsys: pytest.CaptureFixture[str]):
    first = json.loads(output(["--json"], capsys))["rows"][0]
    assert (first["section"], first["name"]) == ("APIs", "Produce")
    assert output(["--list", "--markdown"], capsys).startswith("# What can be explained\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["SharFetch"], "ottla: unknown name 'SharFetch'\n  → did you mean ShareFetch?"),
        (["ShareFetch", "9"], "ottla: ShareFetchRequest has no version 9\n  → it has 1 to 2, so the nearest is 2"),
        (["--error", "999"], "ottla: no Kafka error has the code 999\n  → codes go from -1 to 136"),
        (["ShareFetch", "--error", "1"], "ottla: 'ShareFetch' and --error cannot both be given\n  → give one of them"),
        (
            ["--html"],
            "ottla: the list of pages is not available as HTML\n  → `ottla docs build` makes a site of all pages",
        ),
    ],
)
def test_bad_input_gets_one_line(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]):
    assert run(["explain", *arguments]) == 2
    assert capsys.readouterr() == ("", f"{line}\n")


def test_a_width_that_is_too_small_is_refused(capsys: pytest.CaptureFixture[str]):
    assert run(["explain", "ShareFetch", "--width", "10"]) == 2
    assert "40" in capsys.readouterr().err
