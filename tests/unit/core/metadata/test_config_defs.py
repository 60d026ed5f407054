"""The tables of settings, and values against their rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.core.metadata import config_values
from ottla.core.metadata.config_defs import (
    ConfigDefs,
    ConfigError,
    ConfigType,
    broker_defs,
    client_metrics_defs,
    group_defs,
    topic_defs,
)
from ottla.core.metadata.config_rules import TOPIC_SYNONYMS

TABLES = (broker_defs, topic_defs, group_defs, client_metrics_defs)


@pytest.mark.parametrize("table", TABLES)
def test_every_setting_has_a_text_and_a_default_that_keeps_its_rule(table: Callable[[], ConfigDefs]):
    defs = table()
    assert list(defs) == sorted(defs)
    for name in defs:
        key = defs[name]
        assert key.name == name
        assert key.is_required or key.default is None or key.default_value is not None
        assert key.documentation.endswith("."), name


def test_the_tables_have_what_kafka_has():
    shown = [name for defs in (topic_defs(), group_defs()) for name in defs if not defs[name].is_internal]
    assert (len(shown), len(client_metrics_defs())) == (33 + 17, 3)
    own = [name for name in broker_defs() if name.startswith("ottla.")]
    assert len(broker_defs()) - len(own) >= 360


def test_every_setting_of_a_topic_has_its_synonyms_among_those_of_brokers():
    for name, synonyms in TOPIC_SYNONYMS.items():
        assert name in topic_defs()
        assert all(synonym in broker_defs() for synonym, _ in synonyms)


def test_a_line_of_the_table_becomes_a_setting():
    key = ConfigDefs("x", "a.b | list internal | c,d | set c,d | cluster-wide | Does this | and that.\n")["a.b"]
    assert (key.type, key.default, key.rule, key.update_mode) == (ConfigType.LIST, "c,d", "set c,d", "cluster-wide")
    assert key.is_internal
    assert key.is_dynamic
    assert key.documentation == "Does this | and that."


def test_no_default_and_an_empty_one_are_two_things():
    assert broker_defs()["log.retention.ms"].default is None
    assert broker_defs()["authorizer.class.name"].default == ""
    assert broker_defs()["node.id"].is_required


def test_an_unknown_setting_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match=r"there is no topic setting 'retention'; the nearest is retention\.ms"):
        topic_defs()["retention"]
    assert topic_defs().get("retention") is None


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("INT", "+7", 7),
        ("LONG", "-9223372036854775808", -(2**63)),
        ("SHORT", "32767", 32767),
        ("BOOLEAN", "True", True),
        ("DOUBLE", "1e-3", 0.001),
        ("LIST", " a , b ", ("a", "b")),
        ("LIST", "", ()),
        ("STRING", "as it is", "as it is"),
    ],
)
def test_texts_become_values(kind: str, text: str, value: object):
    assert config_values.convert(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [("INT", "2147483648"), ("SHORT", "32768"), ("INT", "1.0"), ("INT", "٣"), ("BOOLEAN", "yes"), ("DOUBLE", "x")],
)
def test_texts_that_are_no_values(kind: str, text: str):
    with pytest.raises(ValueError, match="it is"):
        config_values.convert(kind, text)


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (">=1", 1, 0),
        (">=-1", -1, -2),
        ("1..9", 9, 10),
        ("0..0.5", 0.5, 0.51),
        ("in a,b", "b", "B"),
        ("nocase A,B", "b", "c"),
        ("text", "x", ""),
        ("set", (), ("a", "a")),
        ("set a,b", ("b", "a"), ("c",)),
        ("set+", ("a",), ()),
        ("set+ a,b", ("a",), ("a", "")),
        ("gzip-level", -1, 0),
        ("throttled-replicas", ("0:1", "2:3"), ("0:1", "*")),
        ("throttled-replicas", ("*",), ("0",)),
        ("voters", ("1@host:9093", "2@[::1]:1"), ("host:9093",)),
        ("addresses", ("host:65535",), ("host:65536",)),
        ("offset-reset", "by_duration:P1DT2H", "by_duration:-PT1H"),
        ("offset-reset", "latest", "by_duration:1h"),
    ],
)
def test_rules(rule: str, good: object, bad: object):
    config_values.check(rule, good)
    with pytest.raises(ValueError, match=r"it is|it has|no entry|is not|does not"):
        config_values.check(rule, bad)
