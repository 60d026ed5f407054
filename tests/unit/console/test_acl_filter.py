"""The filter of rules in an address."""

from __future__ import annotations

import pytest

from ottla.client.acls import AclFilter, PatternType, ResourceType
from ottla.console.page import BadQueryError
from ottla.console.pages.acls import parse_filter


@pytest.mark.parametrize(
    ("principal", "resource", "wanted"),
    [
        ("", "", AclFilter()),
        ("ann", "", AclFilter(principal="User:ann")),
        ("Group:ops", "", AclFilter(principal="Group:ops")),
        ("", "transactional-id", AclFilter(resource_type=ResourceType.TRANSACTIONAL_ID)),
        (
            "",
            "topic:a:b",
            AclFilter(resource_type=ResourceType.TOPIC, resource_name="a:b", pattern_type=PatternType.MATCH),
        ),
    ],
)
def test_what_it_means(principal: str, resource: str, wanted: AclFilter):
    assert parse_filter(principal, resource) == wanted


def test_an_unknown_type_of_resource():
    with pytest.raises(BadQueryError, match="the types are topic, group, cluster"):
        parse_filter("", "orders")
