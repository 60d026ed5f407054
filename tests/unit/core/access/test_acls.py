"""Access control lists: Kafka's rules, and the same answers as a look at every rule would give."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.core.access.acls import Acl, AclFilter, Acls
from ottla.wire.access import Operation, PatternType, Permission, ResourceType

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL
TOPIC = ResourceType.TOPIC


def acl(
    name: str = "orders",
    operation: Operation = READ,
    permission: Permission = ALLOW,
    *,
    pattern: PatternType = LITERAL,
    principal: str = "User:ann",
    host: str = "*",
) -> Acl:
    return Acl(TOPIC, name, pattern, principal, host, operation, permission)


def acls_of(rules: Iterable[Acl], *, allows_without_rules: bool = False) -> Acls:
    made = Acls(super_users=["User:root"], allows_without_rules=allows_without_rules)
    for number, rule in enumerate(rules):
        made.add(number.to_bytes(16, "big"), rule)
    return made


def may(
    rules: Iterable[Acl],
    name: str = "orders",
    operation: Operation = READ,
    principal: str = "User:ann",
    host: str = "10.0.0.9",
    *,
    otherwise: bool = False,
) -> bool:
    return acls_of(rules, allows_without_rules=otherwise).decide(principal, host, operation, TOPIC, name).is_allowed


def test_without_a_rule_nobody_may_but_super_users():
    assert not may([])
    assert may([], principal="User:root")
    assert may([acl(permission=DENY, principal="User:root")], principal="User:root")


@pytest.mark.parametrize(
    "rule",
    [acl(), acl("*"), acl("ord", pattern=PREFIXED), acl(operation=ALL), acl(principal="User:*"), acl(host="10.0.0.9")],
)
def test_what_allows(rule: Acl):
    assert may([rule])


@pytest.mark.parametrize(
    "rule",
    [
        acl("other"),
        acl("order"),
        acl("orders-2", pattern=PREFIXED),
        acl("*", pattern=PREFIXED),
        acl(operation=WRITE),
        acl(operation=DESCRIBE),
        acl(principal="User:bob"),
        acl(host="10.0.0.8"),
    ],
)
def test_what_does_not_allow(rule: Acl):
    assert not may([rule])


@pytest.mark.parametrize(
    "denied", [acl(permission=DENY), acl("*", permission=DENY), acl("o", ALL, DENY, pattern=PREFIXED)]
)
@pytest.mark.parametrize("allowed", [acl(), acl("*"), acl("ord", pattern=PREFIXED)])
def test_denying_beats_allowing(denied: Acl, allowed: Acl):
    assert not may([allowed, denied])
    assert not may([denied, allowed])
    assert may([allowed, denied._replace(principal="User:bob")])


def test_some_operations_imply_describing_and_denying_implies_nothing():
    for operation in (READ, WRITE, Operation.DELETE, Operation.ALTER):
        assert may([acl(operation=operation)], operation=DESCRIBE)
        assert may([acl(operation=DESCRIBE), acl(operation=operation, permission=DENY)], operation=DESCRIBE)
    assert may([acl(operation=Operation.ALTER_CONFIGS)], operation=Operation.DESCRIBE_CONFIGS)
    assert not may([acl(operation=Operation.CREATE)], operation=DESCRIBE)


def test_one_rule_about_a_resource_ends_what_holds_without_any():
    assert may([], otherwise=True)
    assert may([acl("other", principal="User:bob")], otherwise=True)
    assert not may([acl(principal="User:bob")], otherwise=True)
    assert not may([acl("o", pattern=PREFIXED, principal="User:bob")], otherwise=True)


# --- any resource of a type


def may_any(rules: Iterable[Acl], *, otherwise: bool = False) -> bool:
    return acls_of(rules, allows_without_rules=otherwise).decide_by_type("User:ann", "10.0.0.9", WRITE, TOPIC)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], False),
        ([acl(operation=WRITE)], True),
        ([acl("o", WRITE, pattern=PREFIXED)], True),
        ([acl(operation=WRITE), acl(operation=WRITE, permission=DENY)], False),
        ([acl(operation=WRITE), acl("o", WRITE, DENY, pattern=PREFIXED)], False),
        ([acl(operation=WRITE), acl("*", WRITE, DENY)], False),
        ([acl("o", WRITE, pattern=PREFIXED), acl("or", WRITE, DENY, pattern=PREFIXED)], True),
        ([acl("or", WRITE, pattern=PREFIXED), acl("o", WRITE, DENY, pattern=PREFIXED)], False),
        ([acl("*", WRITE), acl("o", WRITE, DENY, pattern=PREFIXED)], True),
        ([acl(operation=READ)], False),
    ],
)
def test_whether_there_is_a_resource_of_a_type(rules: list[Acl], expected: bool):
    assert may_any(rules) is expected


def test_names_without_rules_count_as_long_as_no_rule_is_about_all_names():
    of_another = acl("*", principal="User:bob")
    assert may_any([], otherwise=True)
    assert may_any([acl(principal="User:bob")], otherwise=True)
    assert not may_any([of_another], otherwise=True)
    assert may_any([of_another, acl("o", WRITE)], otherwise=True)
    assert not may_any([acl("*", WRITE, DENY)], otherwise=True)


# --- beside a look at every rule

NAMES = st.sampled_from(["a", "ab", "abc", "b", "*", "ba"])
RULES = st.builds(
    Acl,
    st.just(int(TOPIC)),
    NAMES,
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from(["User:ann", "User:bob", "User:*"]),
    st.sampled_from(["*", "10.0.0.9"]),
    st.sampled_from([READ, WRITE, DESCRIBE, ALL]),
    st.sampled_from([ALLOW, DENY]),
)


def looked_at_one_by_one(rules: list[Acl], principal: str, host: str, operation: Operation, name: str) -> bool:
    def concerns(rule: Acl) -> bool:
        if rule.pattern_type == PREFIXED:
            return name.startswith(rule.resource_name)
        return rule.resource_name in (name, "*")

    def applies(rule: Acl, operations: set[Operation]) -> bool:
        who = rule.principal in (principal, "User:*") and rule.host in (host, "*")
        return concerns(rule) and who and rule.operation in operations

    if any(rule.permission == DENY and applies(rule, {operation, ALL}) for rule in rules):
        return False
    implied = {operation, ALL} | ({READ, WRITE} if operation == DESCRIBE else set())
    return any(rule.permission == ALLOW and applies(rule, implied) for rule in rules)


@settings(max_examples=500)
@given(st.lists(RULES, max_size=8), st.sets(st.integers(0, 7)), NAMES, st.sampled_from([READ, WRITE, DESCRIBE]))
def test_the_index_decides_as_all_rules_do(rules: list[Acl], removed: set[int], name: str, operation: Operation):
    indexed = acls_of(rules)
    for number in removed:
        indexed.remove(number.to_bytes(16, "big"))
    left = [rule for number, rule in enumerate(rules) if number not in removed]
    for principal in ("User:ann", "User:carl"):
        for host in ("10.0.0.9", "10.0.0.1"):
            found = indexed.decide(principal, host, operation, TOPIC, name)
            assert found.is_allowed == looked_at_one_by_one(left, principal, host, operation, name)


# --- filters


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (AclFilter(1, None, 1, None, None, 1, 1), True),
        (AclFilter(TOPIC, "orders", LITERAL, "User:ann", "*", READ, ALLOW), True),
        (AclFilter(TOPIC, "orders", PatternType.MATCH, None, None, 1, 1), True),
        (AclFilter(TOPIC, "orders", PatternType.ANY, None, None, 1, 1), True),
        (AclFilter(TOPIC, "orders", PREFIXED, None, None, 1, 1), False),
        (AclFilter(ResourceType.GROUP, None, 1, None, None, 1, 1), False),
        (AclFilter(1, "other", 1, None, None, 1, 1), False),
        (AclFilter(1, None, 1, "User:bob", None, 1, 1), False),
        (AclFilter(1, None, 1, None, "h", 1, 1), False),
        (AclFilter(1, None, 1, None, None, WRITE, 1), False),
        (AclFilter(1, None, 1, None, None, 1, DENY), False),
    ],
)
def test_filters(wanted: AclFilter, fits: bool):
    assert wanted.fits(acl()) is fits


def test_matching_finds_all_rules_that_concern_a_name():
    wanted = AclFilter(TOPIC, "orders", PatternType.MATCH, None, None, 1, 1)
    assert wanted.fits(acl("*"))
    assert wanted.fits(acl("ord", pattern=PREFIXED))
    assert not wanted.fits(acl("orders-2", pattern=PREFIXED))
    assert not AclFilter(TOPIC, "orders", PatternType.ANY, None, None, 1, 1).fits(acl("*"))
