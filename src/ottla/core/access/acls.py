"""Access control lists: which rules there are, and what they allow. The rules are those of Kafka's StandardAuthorizer.

A rule belongs to a resource pattern: one name, all names (`*`), or all that begin with a prefix. It allows or denies an
operation to a principal (or everybody, `User:*`) from a host (or everywhere, `*`). A rule that denies beats all that
allow. Who is allowed to read, write, delete or alter is allowed to describe, and who may alter configs to describe
them; denying implies nothing.

`Acls` finds the rules of a resource by its name, the star, and its prefixes of lengths that occur, and in each of them
those of the principal: a check looks at few rules, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ottla.wire.access import Operation, PatternType, Permission, ResourceType
from ottla.wire.types.cluster_metadata import AccessControlEntryRecord
from ottla.wire.types.create_acls import CreateAclsRequestAclCreation

__all__ = ["Acl", "AclFilter", "Acls", "Decision"]

ANYBODY: Final = "User:*"
WILDCARD: Final = "*"


_IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset(
        {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER, Operation.ALL}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS, Operation.ALL}),
}
"""Operations that allow another one."""


class Acl(NamedTuple):
    """One rule."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int

    @classmethod
    def of(cls, record: AccessControlEntryRecord) -> Acl:
        """The rule in a record."""
        return cls(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )

    @classmethod
    def wanted(cls, entry: CreateAclsRequestAclCreation) -> Acl:
        """The rule that an entry of CreateAcls asks for."""
        return cls(
            entry.resource_type,
            entry.resource_name,
            entry.resource_pattern_type,
            entry.principal,
            entry.host,
            entry.operation,
            entry.permission_type,
        )

    def __str__(self) -> str:
        kind, pattern = ResourceType(self.resource_type).name.title(), PatternType(self.pattern_type).name
        permission, operation = Permission(self.permission).name, Operation(self.operation).name
        return f"{permission} {operation} on {kind}:{pattern}:{self.resource_name} to {self.principal} from {self.host}"


class AclFilter(NamedTuple):
    """Which rules are meant; None and ANY stand for all."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def fits(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._fits_pattern(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _fits_pattern(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type != PatternType.MATCH:
            return self.resource_name == acl.resource_name
        if acl.pattern_type == PatternType.PREFIXED:
            return self.resource_name.startswith(acl.resource_name)
        return acl.resource_name in (self.resource_name, WILDCARD)


class Decision(NamedTuple):
    is_allowed: bool
    acl: Acl | None = None
    """The rule that decided it, if one did."""


_Rules = dict[str, list[Acl]]
"""The rules of one resource pattern, by principal."""


class _ResourceRules:
    """All rules about one type of resource."""

    __slots__ = ("literal", "prefix_counts", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, _Rules] = {}
        self.prefixed: dict[str, _Rules] = {}
        self.prefix_counts: dict[int, int] = {}
        """Length -> how many prefixes have it."""

    def patterns(self, name: str) -> Iterator[_Rules]:
        """The rules of each pattern that a name fits."""
        for text in (name, WILDCARD) if name != WILDCARD else (name,):
            rules = self.literal.get(text)
            if rules is not None:
                yield rules
        for length in self.prefix_counts:
            if length <= len(name):
                rules = self.prefixed.get(name[:length])
                if rules is not None:
                    yield rules

    def is_denied(self, name: str, is_prefix: bool, who: _Who) -> bool:
        """Whether all names that fit a pattern are denied."""
        if not is_prefix:
            return any(who.found(rules, Permission.DENY) for rules in self.patterns(name))
        covering = [self.literal.get(WILDCARD, {})]
        covering += [self.prefixed.get(name[:length], {}) for length in self.prefix_counts if length <= len(name)]
        return any(who.found(rules, Permission.DENY) for rules in covering)


class _Who(NamedTuple):
    """Who asks for what."""

    principal: str
    host: str
    operation: int

    def found(self, rules: _Rules, permission: Permission) -> Acl | None:
        """A rule that applies."""
        if permission is Permission.ALLOW:
            operations = _IMPLIED_BY.get(Operation(self.operation), (self.operation, Operation.ALL))
        else:
            operations = (self.operation, Operation.ALL)
        for principal in (self.principal, ANYBODY):
            for acl in rules.get(principal, ()):
                if acl.permission == permission and acl.operation in operations and acl.host in (self.host, WILDCARD):
                    return acl
        return None


class Acls:
    """All rules, and what follows from them."""

    def __init__(self, *, super_users: Iterable[str] = (), allows_without_rules: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._allows_without_rules = allows_without_rules
        self._by_type: dict[int, _ResourceRules] = {}
        self._by_id: dict[bytes, Acl] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    # --- changing

    def add(self, acl_id: bytes, acl: Acl) -> None:
        self.remove(acl_id)
        self._by_id[acl_id] = acl
        of_type = self._by_type.setdefault(acl.resource_type, _ResourceRules())
        patterns = of_type.prefixed if acl.pattern_type == PatternType.PREFIXED else of_type.literal
        if acl.pattern_type == PatternType.PREFIXED and acl.resource_name not in patterns:
            length = len(acl.resource_name)
            of_type.prefix_counts[length] = of_type.prefix_counts.get(length, 0) + 1
        patterns.setdefault(acl.resource_name, {}).setdefault(acl.principal, []).append(acl)

    def remove(self, acl_id: bytes) -> None:
        acl = self._by_id.pop(acl_id, None)
        if acl is None:
            return
        of_type = self._by_type[acl.resource_type]
        is_prefix = acl.pattern_type == PatternType.PREFIXED
        patterns = of_type.prefixed if is_prefix else of_type.literal
        rules = patterns[acl.resource_name]
        rules[acl.principal].remove(acl)
        if rules[acl.principal]:
            return
        del rules[acl.principal]
        if rules:
            return
        del patterns[acl.resource_name]
        if is_prefix:
            length = len(acl.resource_name)
            of_type.prefix_counts[length] -= 1
            if not of_type.prefix_counts[length]:
                del of_type.prefix_counts[length]

    # --- asking

    def decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Decision:
        """Whether a principal may do something to a resource."""
        if principal in self._super_users:
            return Decision(True)
        of_type = self._by_type.get(resource_type)
        patterns = [] if of_type is None else list(of_type.patterns(name))
        if not patterns:
            return Decision(self._allows_without_rules)
        who = _Who(principal, host, operation)
        for permission in (Permission.DENY, Permission.ALLOW):
            for rules in patterns:
                acl = who.found(rules, permission)
                if acl is not None:
                    return Decision(permission is Permission.ALLOW, acl)
        return Decision(False)

    def decide_by_type(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Whether there is a resource of a type, even one that does not exist yet, to which a principal may do it."""
        if principal in self._super_users:
            return True
        who = _Who(principal, host, operation)
        of_type = self._by_type.get(resource_type)
        if of_type is None:
            return self._allows_without_rules
        if who.found(of_type.literal.get(WILDCARD, {}), Permission.DENY):
            return False
        if self._allows_without_rules and WILDCARD not in of_type.literal:
            return True  # there are names that no rule is about
        for patterns, is_prefix in ((of_type.literal, False), (of_type.prefixed, True)):
            for name, rules in patterns.items():
                is_allowed = who.found(rules, Permission.ALLOW) is not None
                if is_allowed and (name == WILDCARD or not of_type.is_denied(name, is_prefix, who)):
                    return True
        return False
