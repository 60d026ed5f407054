"""The levels of loggers over the wire, and that they act."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.unit.broker.setting_requests import (
    APPEND,
    DELETE,
    INCREMENTAL_ALTER_CONFIGS,
    LOGGER,
    SET,
    SUBTRACT,
    TOPIC,
    SettingsNode,
)

INVALID_REQUEST, INVALID_CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
NAMES = ("ottla", "ottla.broker", "ottla.broker.node", "ottla.requests")


@pytest.fixture
def node() -> Iterator[SettingsNode]:
    before = {name: logging.getLogger(name).level for name in NAMES}
    logging.getLogger("ottla").setLevel(logging.INFO)
    yield SettingsNode()
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def levels(node: SettingsNode) -> dict[str, str]:
    result = node.describe(LOGGER, "1")
    assert result.error_code == 0
    return {each.name: each.value for each in result.configs}


def test_loggers_are_shown_with_the_level_that_holds_for_them(node: SettingsNode) -> None:
    logging.getLogger("ottla.broker").setLevel(logging.ERROR)
    shown = levels(node)
    assert (shown["root"], shown["ottla.core.groups"]) == ("INFO", "INFO")
    assert (shown["ottla.broker"], shown["ottla.broker.node"]) == ("ERROR", "ERROR")
    assert "ottla" not in shown  # its name is root


def test_an_entry_is_as_apache_kafka_has_it(node: SettingsNode) -> None:
    (entry,) = node.describe(LOGGER, "1", "root", include_synonyms=True).configs
    assert (entry.value, entry.read_only, entry.config_source, entry.is_sensitive) == ("INFO", False, 6, False)
    assert (entry.synonyms, entry.config_type, entry.documentation) == ((), 0, "")


@pytest.mark.parametrize("level", ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"])
def test_a_level_acts_at_once(node: SettingsNode, level: str, caplog: pytest.LogCaptureFixture) -> None:
    names = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}
    assert node.alter(LOGGER, "1", ("ottla.broker", SET, level)) == 0
    assert levels(node)["ottla.broker.node"] == level
    for number in names.values():
        logging.getLogger("ottla.broker.node").log(number, "line")
    assert [each.levelno for each in caplog.records] == [each for each in names.values() if each >= names[level]]


def test_a_level_is_taken_back(node: SettingsNode) -> None:
    node.alter(LOGGER, "1", ("root", SET, "ERROR"), ("ottla.broker", SET, "DEBUG"))
    assert node.alter(LOGGER, "1", ("ottla.broker", DELETE, None)) == 0
    assert levels(node)["ottla.broker.node"] == "ERROR"


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ([("root", SET, "LOUD")], INVALID_CONFIG),
        ([("root", SET, "debug")], INVALID_CONFIG),
        ([("ottla.nothing", SET, "INFO")], INVALID_CONFIG),
        ([("ottla.nothing", DELETE, None)], INVALID_CONFIG),
        ([("root", DELETE, None)], INVALID_REQUEST),
        ([("ottla.broker", APPEND, "INFO")], INVALID_REQUEST),
        ([("ottla.broker", SUBTRACT, "INFO")], INVALID_REQUEST),
        ([("ottla.broker", SET, None)], INVALID_REQUEST),
        ([("root", SET, "INFO"), ("root", SET, "WARN")], INVALID_REQUEST),
    ],
)
def test_what_is_refused_changes_nothing(node: SettingsNode, steps: list[Any], code: int) -> None:
    before = levels(node)
    assert node.alter(LOGGER, "1", ("ottla.broker.node", SET, "FATAL"), *steps) == code
    assert levels(node) == before


@pytest.mark.parametrize("name", ["2", "one", ""])
def test_only_the_node_itself_can_change_its_loggers(node: SettingsNode, name: str) -> None:
    assert node.alter(LOGGER, name, ("root", SET, "INFO")) == INVALID_REQUEST


def test_nothing_changes_if_it_is_only_to_be_checked(node: SettingsNode) -> None:
    assert node.alter(LOGGER, "1", ("root", SET, "FATAL"), validate_only=True) == 0
    assert levels(node)["root"] == "INFO"


def test_loggers_and_topics_in_one_request_are_answered_in_their_order(node: SettingsNode) -> None:
    kind = IncrementalAlterConfigsRequest
    topic = kind.AlterConfigsResource(TOPIC, "orders", (kind.AlterableConfig("retention.ms", SET, "5"),))
    logger = kind.AlterConfigsResource(LOGGER, "1", (kind.AlterableConfig("root", SET, "LOUD"),))
    missing = kind.AlterConfigsResource(TOPIC, "missing", (kind.AlterableConfig("retention.ms", SET, "5"),))
    answers = node.call(INCREMENTAL_ALTER_CONFIGS, kind((topic, logger, missing))).responses
    assert [(each.resource_type, each.resource_name, each.error_code) for each in answers] == [
        (TOPIC, "orders", 0),
        (LOGGER, "1", INVALID_CONFIG),
        (TOPIC, "missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert node.entry(TOPIC, "orders", "retention.ms").value == "5"


def test_the_same_loggers_twice_are_refused_twice(node: SettingsNode) -> None:
    kind = IncrementalAlterConfigsRequest
    logger = kind.AlterConfigsResource(LOGGER, "1", (kind.AlterableConfig("root", SET, "ERROR"),))
    answers = node.call(INCREMENTAL_ALTER_CONFIGS, kind((logger, logger))).responses
    assert [each.error_code for each in answers] == [INVALID_REQUEST, INVALID_REQUEST]
    assert levels(node)["root"] == "INFO"


def test_requests_are_logged_when_their_logger_asks_for_it(node: SettingsNode) -> None:
    node.alter(LOGGER, "1", ("ottla.requests", SET, "INFO"))
    node.alter(LOGGER, "1", ("ottla.requests", SET, "WARN"))
    assert node.request_logging == [True, False]
