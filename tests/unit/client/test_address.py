"""Addresses as people write them."""

import pytest

from ottla.client.address import Address, Peer, parse_address, parse_bootstrap_servers
from ottla.client.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9092", Address("localhost", 9092)),
        ("[::1]:9092", Address("::1", 9092)),
        ("PLAINTEXT://broker-1.example:19092", Address("broker-1.example", 19092)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: Address):
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize("text", ["localhost", "localhost:", ":9092", "localhost:0", "localhost:70000", "::1:9092"])
def test_what_is_no_address_is_named(text: str):
    with pytest.raises(ConfigurationError) as caught:
        parse_address(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("servers", ["a:1,b:2", " a:1 , b:2,", ["a:1", "b:2"], ["a:1,b:2"], "a:1,b:2,a:1"])
def test_several_servers_are_listed_in_any_way(servers: str | list[str]):
    assert parse_bootstrap_servers(servers) == (Address("a", 1), Address("b", 2))


@pytest.mark.parametrize("servers", ["", " , ", []])
def test_no_server_is_an_error(servers: str | list[str]):
    with pytest.raises(ConfigurationError, match="no bootstrap server"):
        parse_bootstrap_servers(servers)


def test_a_broker_is_named_by_its_id_once_it_is_known():
    assert str(Peer(Address("::1", 9092))) == "[::1]:9092"
    assert str(Peer(Address("kafka", 9092), 3)) == "broker 3 (kafka:9092)"
