"""Addresses of clients have the form that Kafka's ACLs, quotas and limits have."""

from __future__ import annotations

import pytest

from ottla.broker.network.addresses import address_text


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("10.0.0.5", "10.0.0.5"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("fd00:0:0:A::5", "fd00:0:0:a:0:0:0:5"),
        ("fe80::1%2", "fe80:0:0:0:0:0:0:1%2"),
        ("::ffff:10.0.0.5", "10.0.0.5"),
        ("0:0:0:0:0:ffff:a00:5", "10.0.0.5"),
        ("broker.example.com", "broker.example.com"),
        ("no:address", "no:address"),
    ],
)
def test_an_address_has_one_form(address: str, text: str):
    assert address_text(address) == text
    assert address_text(text) == text
