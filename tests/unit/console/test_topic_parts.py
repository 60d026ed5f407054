"""Parts of the pages about topics that need no cluster."""

from __future__ import annotations

import msgspec
import pytest

from ottla.client import TopicPartition
from ottla.client.configs import ConfigEntry, ConfigSource, ConfigType, Synonym
from ottla.client.record_text import Decoded, decoded
from ottla.console.html.configs import config_tables, configs_of
from ottla.console.html.records import content, hex_dump, record_time
from ottla.console.html.topics import topic_tabs
from ottla.console.measures import Measures
from ottla.console.pages.records import cursor_of, read_cursor
from ottla.console.readers import Reader, readers_by_topic
from ottla.health.evaluator import SampleEvaluator
from ottla.health.facts import Fact, Group, Lag, ShareOffsets
from ottla.health.samples import Sample
from ottla.observe.cluster_state import ClusterState


def entry(name: str, value: str | None, source: ConfigSource, *, is_sensitive: bool = False) -> ConfigEntry:
    synonyms = (Synonym(f"log.{name}", "7", ConfigSource.DEFAULT),)
    return ConfigEntry(name, value, source, False, is_sensitive, ConfigType.STRING, "what it does", synonyms)


def test_what_was_set_comes_first_and_secrets_are_left_out():
    configs = configs_of(
        [
            entry("b.ms", "1", ConfigSource.DEFAULT),
            entry("a.ms", "2", ConfigSource.STATIC_BROKER),
            entry("z.ms", "3", ConfigSource.TOPIC),
            entry("secret", "leaked", ConfigSource.TOPIC, is_sensitive=True),
        ]
    )
    assert [each.name for each in configs] == ["secret", "z.ms", "a.ms", "b.ms"]
    assert (configs[0].value, configs[0].default, configs[0].synonyms[0].value) == (None, None, None)
    assert configs[1].default == "7"
    shown = config_tables(configs, "this topic")
    assert "leaked" not in shown
    assert shown.index("z.ms") < shown.index("1 config with its default value") < shown.index("b.ms")
    assert "All configs of this topic have default values" in config_tables(configs[3:], "this topic")


def test_a_cursor_is_read_back():
    rest = {0: 4133, 2: 88}
    text = cursor_of(rest)
    assert text == "0:4133,2:88"
    assert read_cursor(text) == rest
    assert cursor_of({}) is None


@pytest.mark.parametrize(
    "text", ["", "5", "-5", "beginning", "2026-11-15T07:00:00", "0:", "0:1,", "٣:١", "0:" + "9" * 19]
)
def test_other_places_are_no_cursor(text: str):
    assert read_cursor(text) is None


def test_bytes_in_rows_of_sixteen():
    dump = hex_dump(b"<script>\x00\x1b" + bytes(range(0x41, 0x4D)), "Value in hex")
    assert "000000  3c 73 63 72 69 70 74 3e 00 1b 41 42 43 44 45 46  &lt;script&gt;··ABCDEF" in dump
    assert "000010  47 48 49 4a 4b 4c" in dump


@pytest.mark.parametrize("ms", [-1, 1 << 61, -(1 << 62)])
def test_a_time_may_be_any_number(ms: int):
    assert str(ms) in record_time(ms)
    assert "2023-11-14 22:13:20.123" in record_time(1_700_000_000_123)


@pytest.mark.parametrize(
    ("data", "form", "expected"),
    [
        (None, "json", Decoded("null", None, 0, False)),
        (b"", "auto", Decoded("utf8", "", 0, False)),
        (b'{"a":1}', "json", Decoded("json", '{"a": 1}', 7, False)),
        (b"\xff", "auto", Decoded("hex", "ff", 1, False)),
        (b"a\xff", "utf8", Decoded("hex", "61ff", 2, False, error="is not UTF-8: at byte 1")),
        (b"\x00\x07", "int", Decoded("int", "7", 2, False)),
        (b"abc", "int", Decoded("hex", "616263", 3, False, error="is not an integer: it has 3 bytes")),
        ("ü{".encode(), "json", Decoded("utf8", "ü{", 3, False, error="is not JSON: at byte 0: Expecting value")),
        (b"\x1b[31m", "auto", Decoded("hex", "1b5b33316d", 5, False)),
    ],
)
def test_bytes_are_decoded_or_say_why_not(data: bytes | None, form: str, expected: Decoded):
    assert decoded(data, form) == expected


def test_a_long_text_is_cut_and_says_so():
    cut = decoded(b"x" * 100, "auto", 10)
    assert (cut.text, cut.bytes_len, cut.truncated) == ("x" * 10, 100, True)
    assert "100 bytes in all" in content(cut)
    assert "cut" not in content(decoded(b"x" * 10, "auto", 10))
    assert content(decoded(None, "auto")) != content(decoded(b"", "auto"))
    assert "&lt;b&gt;" in content(decoded(b"<b>", "auto"))


def test_sums_are_not_known_if_a_part_is_not():
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    measures = Measures(ends={first: 5, second: 7}, starts={first: 2}, sizes={first: 10, second: 20})
    assert (measures.records([first]), measures.records([first, second])) == (3, None)
    assert measures.size([first, second]) == 30


def test_readers_of_a_topic():
    state = ClusterState(SampleEvaluator())
    facts: list[Fact] = [Group(group=each, type="consumer", state="STABLE") for each in ("b", "a")]
    facts.append(Lag(group="b", topic="t", partition=0, committed=3, high_watermark=5))
    facts.append(Lag(group="b", topic="t", partition=1, committed=None, high_watermark=5))
    facts.append(ShareOffsets(group="a", topic="t", partition=0))
    for seq, fact in enumerate(facts):
        body = msgspec.to_builtins(fact)
        state.take(Sample(kind=fact.kind, ts=1, cluster="c", observer="o", seq=seq, body=body))
    assert readers_by_topic(state) == {"t": [Reader("a", "consumer", None), Reader("b", "consumer", 2)]}


def test_names_in_links_are_encoded():
    assert 'href="/topics/a~2Ejson/records"' in topic_tabs("a.json", "topic")
