"""A console that serves in a thread of the test's process, and a browser without scripts that asks it."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ottla.client.settings import Changes
from ottla.console.access import Access, TokenAccess
from ottla.console.server import ConsoleServer
from ottla.console.watcher import ClusterWatcher
from ottla.health.evaluator import SampleEvaluator
from ottla.observe import Options
from ottla.observe.kinds import intervals

TIMEOUT_S = 60
EVERY_S = 0.2
_TAG = re.compile(r"<[^>]*>")
CARD_FIELDS = 4


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def words(self) -> str:
        """What a reader sees, without markup."""
        inner = self.text.partition("<main")[2] or self.text
        return " ".join(_TAG.sub(" ", inner).split())

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def links(self) -> list[str]:
        return re.findall(r'href="([^"]*)"', self.text)


class Browser:
    """Asks one console, with a cookie once it has the token."""

    def __init__(self, server: ConsoleServer, watcher: ClusterWatcher, token: str = "") -> None:
        self.server = server
        self.watcher = watcher
        self.token = token
        self.address = urlsplit(server.address)
        self.cookie = ""

    def ask(self, path: str, method: str = "GET", body: str | None = None, **headers: str) -> Answer:
        connection = HTTPConnection(self.address.hostname or "", self.address.port, timeout=TIMEOUT_S)
        try:
            sent = {"cookie": self.cookie, **headers}
            connection.request(
                method, path, body, {name.replace("_", "-"): text for name, text in sent.items() if text}
            )
            response = connection.getresponse()
            got = {name.lower(): text for name, text in response.getheaders()}
            return Answer(response.status, got, response.read().decode())
        finally:
            connection.close()

    def log_in(self) -> None:
        answer = self.ask(f"/?token={self.token}")
        assert answer.status == 303, answer
        self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def page(self, path: str) -> Answer:
        answer = self.ask(path)
        assert answer.status == 200, f"{path}: {answer.status} {answer.words}"
        assert fields_of_largest_card(answer.text) <= CARD_FIELDS, f"{path}: mark columns of its tables as details"
        return answer

    def twin(self, path: str) -> Any:
        answer = self.page(path)
        assert answer.headers["content-type"].startswith("application/json"), path
        return answer.json

    def until(self, path: str, is_enough: Callable[[Any], bool]) -> Any:
        """The data of a twin, as soon as they are what the test waits for."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            answer = self.ask(path)
            data = answer.json.get("data")
            if answer.status == 200 and is_enough(data):
                return data
            assert time.monotonic() < deadline, f"{path} did not become what the test waits for: {answer.text[:2000]}"
            time.sleep(0.05)


def fields_of_largest_card(page: str) -> int:
    """How many fields a narrow screen shows of a row, at most, until all are asked for."""
    tables = re.sub(r'<div class="matrix">.*?</table>', "", page, flags=re.DOTALL)
    rows = tables.split("<tr>")
    return max(len(re.findall(r'<td data-label="[^"]*"(?! class="[^"]*detail)', row)) for row in rows)


@contextmanager
def console(
    bootstrap_servers: str, options: Options | None = None, pipelines: Sequence[Path] = (), **settings: Any
) -> Iterator[Browser]:
    """A console of a cluster, and a browser that is logged in."""
    changes: Changes = settings  # type: ignore[assignment]
    every = options or Options(intervals(EVERY_S))
    watcher = ClusterWatcher(bootstrap_servers, changes, SampleEvaluator(), options=every, pipelines=pipelines)
    access = TokenAccess(watcher)
    with serving(access) as server:
        browser = Browser(server, watcher, access.token)
        browser.log_in()
        yield browser


@contextmanager
def serving(access: Access) -> Iterator[ConsoleServer]:
    """A console in a thread."""
    server = ConsoleServer(access, host="127.0.0.1", port=0)
    is_ready = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(server.run(is_ready.set)), daemon=True)
    thread.start()
    try:
        assert is_ready.wait(TIMEOUT_S)
        yield server
    finally:
        server.stop()
        thread.join(TIMEOUT_S)
