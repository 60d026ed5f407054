"""The console itself: who gets in, what every answer has, and how it says no."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

import msgspec
import pytest

from ottla.console.page import Page
from ottla.console.pages import PAGES, features
from ottla.testing import Broker
from tests.component.console.served import Browser, console

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'"


def test_the_token_is_asked_for_and_leaves_the_address(browser: Browser):
    stranger = Browser(browser.server, browser.watcher)
    answer = stranger.ask("/wire?q=a")
    assert (answer.status, answer.headers["location"]) == (303, "/login?next=%2Fwire%3Fq%3Da")
    assert stranger.ask("/overview.json").status == 401
    assert stranger.ask("/events?of=group").status == 401
    assert stranger.ask("/?token=wrong").status == 303
    answer = stranger.ask(f"/overview.json?token={browser.token}")
    assert (answer.status, answer.headers["location"]) == (303, "/overview.json")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=strict" in answer.headers["set-cookie"]


def test_the_address_with_the_token_works_again(browser: Browser):
    answer = browser.ask(f"/topics?q=a&token={browser.token}")
    assert (answer.status, answer.headers["location"]) == (303, "/topics?q=a")


def test_the_token_can_be_typed(browser: Browser):
    stranger = Browser(browser.server, browser.watcher)
    form = {"content_type": "application/x-www-form-urlencoded"}
    wrong = stranger.ask("/login?next=%2Ftopics", "POST", "token=nonsense", **form)
    assert (wrong.status, "not the token" in wrong.words) == (403, True)
    right = stranger.ask("/login?next=%2Ftopics", "POST", f"token={browser.token}", **form)
    assert (right.status, right.headers["location"]) == (303, "/topics")
    for elsewhere in ("%2F%2Fevil.example", "%2F%5Cevil.example", "https:%2F%2Fevil.example"):
        sent = stranger.ask(f"/login?next={elsewhere}", "POST", f"token={browser.token}", **form)
        assert sent.headers["location"] == "/"
    assert stranger.ask("/login", "POST", "token=" + "x" * 10_000, **form).status == 400


def test_foreign_names_are_refused(browser: Browser):
    answer = browser.ask("/", host="evil.example")
    assert (answer.status, "--allow-host evil.example" in answer.text) == (421, True)
    assert browser.ask("/healthz", host=f"localhost:{browser.address.port}").status == 200


def test_every_answer_has_the_headers(browser: Browser):
    for path in ("/", "/overview.json", "/static/console.css", "/nothing-here", "/login", "/healthz"):
        headers = browser.ask(path).headers
        assert headers["content-security-policy"].startswith(POLICY), path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_what_does_not_exist_is_named(browser: Browser):
    assert browser.ask("/nothing-here").status == 404
    assert browser.ask("/nothing-here.json").json == {"error": "page /nothing-here.json does not exist", "status": 404}
    answer = browser.ask("/overview.json?sort=up")
    assert (answer.status, answer.json["error"]) == (400, "unknown query parameter 'sort'; known: none")
    assert browser.ask("/static/secret.txt").status == 404


@pytest.mark.parametrize("path", ["/nothing-here", "/groups/nobody", "/topics?sort=sideways"])
def test_pages_about_errors_lead_on_and_tell_strangers_nothing(path: str, browser: Browser):
    answer = browser.ask(path)
    assert answer.status in (400, 404)
    assert {"/topics", "/groups", "/security/acls"} <= set(answer.links)
    stranger = Browser(browser.server, browser.watcher)
    assert "/topics" not in stranger.ask(path).links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_has_a_schema(page: Page, browser: Browser):
    schema = browser.page(f"/schema/{page.name}.json").json
    assert schema["$defs"]
    msgspec.json.schema(page.data)


def test_a_cluster_that_is_away_is_said_to_be(browser: Browser):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with console(f"127.0.0.1:{port}", connect_timeout_ms=1_000) as lonely:
        page = lonely.page("/")
        while "has been unreachable" not in page.words:
            page = lonely.page("/")
        assert "No data yet." in page.words
        assert lonely.page("/overview.json").json["outage"].startswith("cannot connect")


def test_an_error_that_a_broker_answers_does_not_make_the_cluster_unreachable(broker: Broker, browser: Browser):
    broker.faults.fail("DescribeTopicPartitions", "UNKNOWN_SERVER_ERROR", times=1)
    answer = browser.ask("/topics/never-seen")
    assert answer.status == 503
    assert "Request failed" in answer.words
    assert "UNKNOWN_SERVER_ERROR" in answer.words


@pytest.mark.parametrize("name", ["two~20words", "~2E~2E", "x" * 250])
def test_a_topic_with_a_name_that_no_topic_can_have_does_not_exist(name: str, browser: Browser):
    for path in (f"/topics/{name}", f"/topics/{name}/records.json"):
        answer = browser.ask(path)
        assert (answer.status, "does not exist" in answer.text) == (404, True)


def test_a_fault_is_told_to_programs_in_json(browser: Browser, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(features, "feature_rows", None)
    answer = browser.ask("/features.json")
    assert (answer.status, answer.json["status"]) == (500, 500)
    assert answer.json["error"].startswith("the console has failed; see its log, error ")
    assert "Internal error" in browser.ask("/features").words


@contextmanager
def events(browser: Browser) -> Iterator[Iterator[bytes]]:
    """The lines of a stream of events."""
    connection = HTTPConnection(browser.address.hostname or "", browser.address.port, timeout=60)
    try:
        connection.request("GET", "/events?of=group&of=cluster", headers={"cookie": browser.cookie})
        answer = connection.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield iter(answer.readline, b"")
    finally:
        connection.close()


def test_events_come_when_something_changes(browser: Browser):
    with events(browser) as lines:
        assert next(lines) == b"retry: 3000\n"
        assert next(line for line in lines if line.startswith(b"event:")) == b"event: changed\n"
        assert next(lines) == b'data: ["cluster"]\n'


def test_a_console_stops_without_a_word_while_pages_are_open(broker: Broker, capfd: pytest.CaptureFixture[str]):
    with console(broker.bootstrap_servers) as browser, events(browser) as lines:
        assert next(lines) == b"retry: 3000\n"
        browser.server.stop()
        list(lines)
    assert capfd.readouterr().err == ""
