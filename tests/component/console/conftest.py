"""One broker and its console for all tests of a module."""

from collections.abc import Iterator
from contextlib import closing

import pytest

import ottla.testing
from ottla.testing import Broker
from ottla.testing.ports import PortReservation
from tests.component.console.served import Browser, console


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with closing(PortReservation()) as inspect:
        inspect.release()
        with ottla.testing.broker(ottla_inspect_listeners=f"http://127.0.0.1:{inspect.port}") as running:
            yield running


@pytest.fixture(scope="module")
def browser(broker: Broker) -> Iterator[Browser]:
    with console(broker.bootstrap_servers) as logged_in:
        logged_in.until("/overview.json", lambda data: data["counts"]["nodes"] == 1)
        yield logged_in
