"""Secrets that were planted in settings and logins show up nowhere."""

from __future__ import annotations

import logging
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ottla.client import configs
from ottla.client.blocking import BlockingClient
from ottla.client.configs import Change, Operation, Resource, ResourceType
from ottla.client.errors import ClientError
from ottla.client.properties import settings_of
from ottla.client.tokens import create_token
from ottla.client.users import ScramUser, set_users
from ottla.testing import broker
from ottla.testing.ports import PortReservation
from ottla.testing.security import USERS

SECRET = "planted-secret"


def test_no_secret_is_in_any_output(caplog: pytest.LogCaptureFixture, tmp_path: Path):
    caplog.set_level(logging.DEBUG)
    kept = PortReservation()
    settings: dict[str, Any] = {
        "delegation.token.secret.key": f"{SECRET}-key",
        "ssl.key.password": f"{SECRET}-store",
        "ottla.metrics.port": kept.port,
        "ottla.audit.file": str(tmp_path / "audit.jsonl"),
    }
    with broker(security="sasl_ssl", **settings) as made:
        login = settings_of(made.security.client_properties())
        with BlockingClient(made.bootstrap_servers, **login) as client:
            shown = client.call(configs.describe, Resource(ResourceType.BROKER, "1"))
            token = client.call(create_token)
            client.call(set_users, [ScramUser("dora", f"{SECRET}-user", "SCRAM-SHA-256")])
            change = Change(Operation.SET, "listener.name.sasl_ssl.ssl.key.password", f"{SECRET}-changed")
            with suppress(ClientError):
                client.call(configs.alter, Resource(ResourceType.BROKER, "1"), [change])
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            wrong = settings_of(made.security.client_properties(password=f"{SECRET}-guess", mechanism=mechanism))
            with suppress(ClientError), BlockingClient(made.bootstrap_servers, **wrong):
                pass
        with urllib.request.urlopen(f"http://127.0.0.1:{kept.port}/metrics") as page:
            metrics = page.read().decode()
        made.stop()
    kept.close()
    audit = (tmp_path / "audit.jsonl").read_text()
    output = f"{caplog.text}\n{shown!r}\n{metrics}\n{audit}"
    for secret in (SECRET, token.password, *USERS.values()):
        assert secret not in output
    assert "failed-login" in output
    assert "login.failed" in audit
    assert "token.created" in audit
