import pytest

from ottla.wire import uuid_bytes, uuid_text
from ottla.wire.properties import (
    MetaProperties,
    MetaPropertiesError,
    read_meta_properties,
    read_properties,
    write_meta_properties,
    write_properties,
)
from tests.unit.core.metadata.cluster import uuid

ID = "dnBCA2kRSpSW6gLn6PBWoA"


def test_what_is_written_is_read():
    for meta in (MetaProperties("b3R0bGEtaW50ZXJvcC0wMQ", 1, uuid(1)), MetaProperties("any:text = you!like", 0, None)):
        assert read_meta_properties(write_meta_properties(meta, 0)) == meta


def test_any_order_and_comments():
    text = f"# comment\n\ncluster.id = c \n  directory.id:{ID}\nnode.id 7\n!old\nversion=1\nother=ignored\n"
    assert read_meta_properties(text.encode()) == MetaProperties("c ", 7, uuid_bytes(ID))


def test_version_0_calls_the_node_broker():
    assert read_meta_properties(b"version=0\nbroker.id=3\ncluster.id=c\n") == MetaProperties("c", 3)
    assert read_meta_properties(b"broker.id=3\ncluster.id=c\n") == MetaProperties("c", 3)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version=2\nnode.id=1\ncluster.id=c", "version '2'"),
        ("version=1\ncluster.id=c", "node.id is missing"),
        ("version=1\nnode.id=1", "cluster.id is missing"),
        ("version=1\nnode.id=one\ncluster.id=c", "not a number"),
        ("version=1\nnode.id=1\ncluster.id=c\ndirectory.id=short", "not an id"),
        ("version=1\nnode.id=1\ncluster.id=c\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ", "reserved"),
        ("", "cluster.id is missing"),
    ],
)
def test_what_cannot_be_used(text: str, reason: str):
    with pytest.raises(MetaPropertiesError, match=reason):
        read_meta_properties(text.encode())


# --- Java's properties text


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1", {"a": "1"}),
        ("a:1\nb 2\nc\t=\t3", {"a": "1", "b": "2", "c": "3"}),
        ("a==1", {"a": "=1"}),
        ("a", {"a": ""}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=one,\\\n   two", {"a": "one,two"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n\\\n2", {"a": "12"}),
        ("a=1\\\n# no comment here", {"a": "1# no comment here"}),
        (r"a\ b\=c=x\ty\nz\u0041\q", {"a b=c": "x\ty\nzAq"}),
        ("a=1\na=2", {"a": "2"}),
        ("# x\\\na=1", {"a": "1"}),
        ("a=trailing ", {"a": "trailing "}),
        ("a=1\\", {"a": "1"}),
        ("=x", {"": "x"}),
    ],
)
def test_reading(text: str, values: dict[str, str]):
    assert read_properties(text) == values


def test_writing_escapes_what_reading_would_take_for_something_else():
    values = {"a b": " x", "c=d": "e:f#g!h\\i", "tab": "\t\n\r\f", "plain": "a b ", "ünï": "ö"}
    assert read_properties(write_properties(values, 0)) == values
    assert write_properties({"a": "1"}, 0) == "#\n#Thu Jan 01 00:00:00 UTC 1970\na=1\n"


def test_ids_have_22_characters():
    assert uuid_text(uuid_bytes(ID)) == ID
