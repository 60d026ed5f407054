"""The wire pages and the decoder: the same pages as on the site, with the console around them."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from tests.component.console.served import Answer, Browser

FORM = {"content_type": "application/x-www-form-urlencoded"}
REQUEST = "00000018001200030000000100026d6500066f74746c6104302e3100"


def decode(browser: Browser, path: str = "/wire/decode", **fields: str) -> Answer:
    return browser.ask(path, "POST", urlencode(fields), **FORM)


def test_the_list_leads_to_every_kind_of_page(browser: Browser):
    page = browser.page("/wire")
    assert page.text.count("<h1") == 1
    links = {link for link in page.links if link.startswith("/wire/")}
    for kind in ("api", "record", "header", "error"):
        some = sorted(link for link in links if link.startswith(f"/wire/{kind}/"))
        assert some, kind
        for link in some[:2] + some[-2:]:
            assert browser.page(link).text.count("<h1") == 1, link


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/wire/api/ShareFetch/request-v2", "ShareFetchRequest v2"),
        ("/wire/api/ShareFetch", "ShareFetchRequest v2"),
        ("/wire/record/ShareSnapshotValue/v0", "ShareSnapshotValue v0"),
        ("/wire/error/UNKNOWN_MEMBER_ID", "UNKNOWN_MEMBER_ID"),
        ("/wire/error/25", "UNKNOWN_MEMBER_ID"),
    ],
)
def test_a_page_and_its_twin(path: str, words: str, browser: Browser):
    assert words in browser.page(path).words
    twin = browser.twin(f"{path}.json")
    assert twin["schema"].startswith("ottla.console/wire-")
    assert twin["data"]["title"]


@pytest.mark.parametrize(
    "path",
    [
        "/wire/api/ShareFetsh",
        "/wire/api/ShareFetch/request-v99",
        "/wire/api/ShareFetch/v1",
        "/wire/api/ShareFetch/newest",
        "/wire/record/ShareSnapshotValue/request-v0",
        "/wire/error/NO_SUCH_ERROR",
        pytest.param(f"/wire/api/{'1' * 5_000}", id="a long key"),
        pytest.param(f"/wire/api/Fetch/request-v{'1' * 5_000}", id="a long version"),
    ],
)
def test_what_the_protocol_does_not_have_is_not_found(path: str, browser: Browser):
    assert browser.ask(path).status == 404
    assert browser.ask(f"{path}.json").status == 404


def test_bytes_are_decoded_and_stay_out_of_the_address(browser: Browser):
    assert "Paste hex" in browser.page("/wire/decode").words
    answer = decode(browser, bytes=REQUEST)
    assert (answer.status, "location" in answer.headers) == (200, False)
    assert "ApiVersionsRequest v3" in answer.words
    assert "certain" in answer.words
    data = decode(browser, "/wire/decode.json", bytes=REQUEST).json["data"]
    assert data["guesses"][0] == {"name": "ApiVersionsRequest", "versions": [3], "fits": True}
    leaves = {each["path"].rpartition(".")[2]: each["value"] for each in data["rows"]}
    assert leaves["ClientSoftwareName"] == '"ottla"'
    assert data["error"] is None


def test_what_breaks_off_is_shown_as_far_as_it_goes(browser: Browser):
    data = decode(browser, "/wire/decode.json", bytes=REQUEST[:-12], name="ApiVersionsRequest").json["data"]
    assert "ApiVersionsRequest" in data["error"]
    assert data["rows"]


@pytest.mark.parametrize(
    ("text", "said"),
    [("zz <b>", "hex"), ("<script>alert(1)</script>", "hex")],
)
def test_what_is_no_bytes_is_said_to_be_none(text: str, said: str, browser: Browser):
    answer = decode(browser, bytes=text)
    assert answer.status == 200
    assert said in answer.words
    assert "<script>alert" not in answer.text


def test_a_message_that_does_not_exist_is_named(browser: Browser):
    answer = decode(browser, bytes=REQUEST, name="Nonsense")
    assert (answer.status, "Nonsense" in answer.words) == (400, True)
    assert decode(browser, bytes=REQUEST, more="x").status == 400
