"""Rights on every API: a node of ours answers as Apache Kafka does, whoever asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.broker.handlers import SERVED
from ottla.wire import frames
from tests.component.broker.raw_client import RawClient, running_node
from tests.component.broker.rights import (
    ASKERS,
    CASES,
    DIFFERENCES,
    GOLDEN,
    NEWER,
    Asking,
    Case,
    read_answers,
    settings,
)

ALL = [*CASES, *NEWER]
APIS_WITHOUT_RIGHTS = {"SaslAuthenticate"}
"""What the askers need to be somebody."""
LISTENERS = "PLAINTEXT://127.0.0.1:0,LOGIN://127.0.0.1:0,CONTROLLER://127.0.0.1:0"


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    own = {"listeners": LISTENERS, "node.id": "1"}
    with running_node(tmp_path_factory.mktemp("node"), **settings(ALL), **own) as running:
        doors = [running.node.advertised[name].port for name in ("LOGIN", "CONTROLLER")]
        login, controller = (RawClient("127.0.0.1", port) for port in doors)
        asking = Asking(ALL, login, controller)
        asking.prepare()
        yield asking
        login.close_all()
        controller.close_all()


@pytest.fixture(scope="module")
def golden() -> dict[tuple[str, str], str]:
    """What Apache Kafka says, but where we know better."""
    return read_answers(GOLDEN) | read_answers(DIFFERENCES)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_everybody_is_told_what_apache_kafka_tells(asking: Asking, golden: dict[tuple[str, str], str], case: Case):
    said = {asker: asking.answer(case, asker) for asker in ASKERS}
    assert said == {asker: golden[case.name, asker] for asker in ASKERS}


def test_every_api_is_asked_for():
    asked = {case.api for case in ALL} | APIS_WITHOUT_RIGHTS
    assert {frames.api_names()[key] for key in SERVED} == asked


@pytest.mark.parametrize(("name", "code"), [("update-topology-description", 30), ("unregister-controller", 31)])
def test_what_apache_kafka_does_not_have_takes_rights_too(asking: Asking, name: str, code: int):
    (case,) = (each for each in NEWER if each.name == name)
    said = {asker: asking.answer(case, asker) for asker in ASKERS}
    refused = {asker for asker, text in said.items() if f"error_code={code}" in text}
    assert refused == {"stranger", "describer", "denied", "lost"}
