import json

import pytest

from ottla import wire
from ottla.cli import run


def lines_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert run(["messages", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_every_message_has_a_line(capsys: pytest.CaptureFixture[str]):
    heading, *rows = lines_of([], capsys)
    assert heading.split() == ["KEY", "NAME", "KIND", "VERSIONS", "FLEXIBLE", "NOTE"]
    assert [row.split()[1] for row in rows] == list(wire.names())


def test_a_line_shows_key_kind_and_versions(capsys: pytest.CaptureFixture[str]):
    rows = {row.split()[1]: row.split() for row in lines_of([], capsys)}
    low, high = wire.versions("ShareFetchRequest")[0], wire.versions("ShareFetchRequest")[-1]
    assert rows["ShareFetchRequest"] == ["78", "ShareFetchRequest", "request", f"{low}-{high}", "0+"]
    assert rows["InitProducerIdRequest"][-3:] == ["v6", "is", "unstable"]
    assert rows["StreamsGroupMetadataKey"] == ["17", "StreamsGroupMetadataKey", "coordinator-key", "0", "never"]


def test_a_text_narrows_the_list_whatever_its_case(capsys: pytest.CaptureFixture[str]):
    _, *rows = lines_of(["SHAREFETCH"], capsys)
    assert [row.split()[1] for row in rows] == ["ShareFetchRequest", "ShareFetchResponse"]


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]):
    found = json.loads("\n".join(lines_of(["--json"], capsys)))["rows"]
    assert [message["name"] for message in found] == list(wire.names())
    for message in found:
        assert message["versions"] == [wire.versions(message["name"])[0], wire.versions(message["name"])[-1]]


def test_json_has_every_fact_of_a_message(capsys: pytest.CaptureFixture[str]):
    (request, _) = json.loads("\n".join(lines_of(["InitProducerId", "--json"], capsys)))["rows"]
    assert request == {
        "name": "InitProducerIdRequest",
        "kind": "request",
        "key": 22,
        "versions": [0, 6],
        "flexible_from": 2,
        "latest_is_unstable": True,
        "listeners": ["broker"],
    }


@pytest.mark.parametrize(
    ("text", "advice"),
    [("SharFetchReqest", "did you mean ShareFetchRequest?"), ("#", "'ottla messages' lists all messages")],
)
def test_a_text_that_matches_nothing_is_refused(text: str, advice: str, capsys: pytest.CaptureFixture[str]):
    assert run(["messages", text]) == 2
    assert capsys.readouterr() == ("", f"ottla: no message has '{text}' in its name\n  → {advice}\n")
