"""Logins with users of the cluster: each sees what he may see, and a wrong password gets nobody in."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

import ottla.testing
from ottla.client.properties import settings_of
from ottla.console.access import FAILURES_MAX, IDLE_MS, PasswordAccess
from ottla.console.server import ConsoleServer
from ottla.console.watcher import ClusterWatcher, now_ms
from ottla.health.evaluator import SampleEvaluator
from ottla.observe import Options
from ottla.observe.kinds import intervals
from ottla.testing import Broker
from ottla.testing.security import USERS
from tests.component.console.served import EVERY_S, Answer, Browser, serving

FORM = {"content_type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with ottla.testing.broker(security="sasl_plaintext") as broker:
        yield broker


class Console:
    """A console with logins, on a broker that knows alice and bob."""

    def __init__(self, broker: Broker) -> None:
        self.watchers: list[ClusterWatcher] = []
        self._broker = broker
        self._properties = broker.security.client_properties("alice")
        self.access = PasswordAccess(self._watcher)
        self.server: ConsoleServer | None = None

    def _watcher(self, user: str, password: str) -> ClusterWatcher:
        own = {key: value for key, value in self._properties.items() if key != "sasl.jaas.config"}
        settings = settings_of({**own, "sasl.username": user, "sasl.password": password})
        options = Options(intervals(EVERY_S))
        servers = self._broker.bootstrap_servers
        watcher = ClusterWatcher(servers, settings, SampleEvaluator(), principal=f"User:{user}", options=options)
        self.watchers.append(watcher)
        return watcher

    def stranger(self) -> Browser:
        assert self.server is not None
        return Browser(self.server, self.watchers[0] if self.watchers else None)  # type: ignore[arg-type]

    def log_in(self, user: str, password: str, browser: Browser | None = None) -> tuple[Answer, Browser]:
        browser = browser or self.stranger()
        body = urlencode({"user": user, "password": password})
        answer = browser.ask("/login?next=%2Ftopics", "POST", body, **FORM)
        browser.cookie = answer.headers.get("set-cookie", "").partition(";")[0]
        return answer, browser


@pytest.fixture
def console(secured: Broker) -> Iterator[Console]:
    made = Console(secured)
    with serving(made.access) as server:
        made.server = server
        yield made


def test_each_user_sees_the_cluster_as_himself(console: Console):
    form = console.stranger().ask("/login")
    assert "Log in as a user of the cluster" in form.words
    for user in ("alice", "bob"):
        answer, browser = console.log_in(user, USERS[user])
        assert (answer.status, answer.headers["location"]) == (303, "/topics")
        browser.until("/overview.json", lambda data: data["counts"]["nodes"] == 1)
        assert browser.twin("/overview.json")["cluster"]["principal"] == f"User:{user}"
        assert f"User:{user}" in browser.page("/").words
    first, second = console.watchers
    assert first is not second


def test_two_browsers_of_one_user_share_a_view(console: Console):
    browsers = [console.log_in("alice", USERS["alice"])[1] for _ in range(2)]
    for browser in browsers:
        browser.until("/overview.json", lambda data: data["counts"]["nodes"] == 1)
    assert sum(each.cluster_id != "" for each in console.watchers) == 1


@pytest.mark.parametrize(
    ("user", "password", "said"),
    [
        ("alice", "wrong", "Wrong user or password"),
        ("nobody", "x", "Wrong user or password"),
        ("", "", "Enter a user"),
    ],
)
def test_who_is_not_known_does_not_get_in(user: str, password: str, said: str, console: Console):
    answer, browser = console.log_in(user, password)
    assert (answer.status, said in answer.words) == (403, True)
    assert browser.ask("/overview.json").status == 401
    assert browser.ask("/overview.json?token=").status == 401


def test_guesses_are_counted(console: Console):
    for _ in range(FAILURES_MAX):
        console.access._failed_ms.append(now_ms())
    answer, _ = console.log_in("alice", USERS["alice"])
    assert (answer.status, "Too many failed logins" in answer.words) == (403, True)


def test_sessions_end(console: Console):
    _, browser = console.log_in("alice", USERS["alice"])
    assert browser.ask("/overview.json").status == 200
    browser.ask("/logout", "POST")
    assert browser.ask("/overview.json").status == 401
    _, browser = console.log_in("bob", USERS["bob"])
    assert browser.ask("/overview.json").status == 200
    console.access.sweep(now_ms() + 2 * IDLE_MS)
    assert browser.ask("/overview.json").status == 401
