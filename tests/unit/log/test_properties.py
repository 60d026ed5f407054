"""meta.properties, as Kafka writes and reads it."""

from __future__ import annotations

import pytest

from ottla.log.properties import MetaProperties, PropertiesError, parse_properties

DIRECTORY_ID = bytes(range(16))


def test_it_reads_back() -> None:
    properties = MetaProperties("MkU3OEVBNTcwNTJENDM2Qg", 1, DIRECTORY_ID)
    assert MetaProperties.parse(properties.format()) == properties


def test_a_file_of_apache_kafka() -> None:
    text = (
        b"#\n#Sun Nov 15 04:00:00 UTC 2026\ncluster.id=abc\ndirectory.id=AAECAwQFBgcICQoLDA0ODw\nnode.id=3\nversion=1\n"
    )
    assert MetaProperties.parse(text) == MetaProperties("abc", 3, DIRECTORY_ID)


def test_version_0_calls_the_node_a_broker() -> None:
    assert MetaProperties.parse(b"cluster.id=abc\nbroker.id=3\n") == MetaProperties("abc", 3, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"version=2\n", "version 2"),
        (b"version=1\nnode.id=1\n", "no cluster.id"),
        (b"version=1\ncluster.id=abc\n", "no node.id"),
        (b"version=1\ncluster.id=abc\nnode.id=one\n", "one"),
        (b"version=1\ncluster.id=abc\nnode.id=1\ndirectory.id=x\n", "meta.properties"),
        (b"", "no cluster.id"),
    ],
)
def test_what_is_missing_is_named(text: bytes, reason: str) -> None:
    with pytest.raises(PropertiesError, match=reason):
        MetaProperties.parse(text)


@pytest.mark.parametrize(
    ("line", "pair"),
    [
        (b"a=b", ("a", "b")),
        (b"  a : b c ", ("a", "b c ")),
        (b"a b", ("a", "b")),
        (b"a", ("a", "")),
        (b"a=", ("a", "")),
        (b"a=b=c", ("a", "b=c")),
        (b"a\\=b=c", ("a=b", "c")),
        (b"a=\\u0041\\t\\\\", ("a", "A\t\\")),
        (b"a=one,\\\n   two", ("a", "one,two")),
    ],
)
def test_lines_are_read_as_java_reads_them(line: bytes, pair: tuple[str, str]) -> None:
    assert parse_properties(b"# comment\n! another\n\n" + line) == dict([pair])
