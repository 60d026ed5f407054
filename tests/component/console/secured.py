"""A broker with an authorizer, users and tokens, and consoles of its users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.client.blocking import BlockingClient
from ottla.client.properties import settings_of
from ottla.client.settings import Changes
from ottla.testing import Broker, broker
from tests.component.console.served import Browser, console

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "delegation.token.secret.key": "key",
}


@contextmanager
def secured_broker() -> Iterator[Broker]:
    with broker(security="sasl_plaintext", **SETTINGS) as made:
        yield made


def settings(made: Broker, user: str) -> Changes:
    return settings_of(made.security.client_properties(user))


@contextmanager
def client_of(made: Broker, user: str) -> Iterator[BlockingClient]:
    with BlockingClient(made.bootstrap_servers, **settings(made, user)) as client:
        yield client


@contextmanager
def console_of(made: Broker, user: str) -> Iterator[Browser]:
    with console(made.bootstrap_servers, **settings(made, user)) as browser:
        browser.until("/overview.json", lambda data: data["counts"]["nodes"] == 1)
        yield browser
