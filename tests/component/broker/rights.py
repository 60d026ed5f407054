"""What everybody may do: each API as somebody asks for it who has no right, some, exactly those it takes, or all.

A `Case` is a request and the rights that it takes. Each is sent by every one of ASKERS, each with names of its own, so
that nobody sees what another one did. What an answer says about rights is one line of text (`summary`): error codes,
permitted operations, hidden names, and how many things are shown. tests/golden/rights.txt has Apache Kafka's lines.

The same cases run against a node of ours, and in tests/interop against Apache Kafka.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

import msgspec

from ottla.wire import types
from ottla.wire.access import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from ottla.wire.index import MESSAGES
from ottla.wire.types import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.component.broker.raw_client import READY_ATTEMPTS, Closed, Connection, RawClient, batch

CASES_FILE: Final = Path(__file__).with_name("rights_cases.txt")
DIFFERENCES: Final = CASES_FILE.with_name("rights_differences.txt")
"""Where we answer in another way, and why."""
GOLDEN: Final = Path(__file__).parents[2] / "golden" / "rights.txt"
ASKERS: Final = ("stranger", "describer", "owner", "denied", "admin", "lost", "finder")
"""Without rights; with DESCRIBE only; with the rights of the case; allowed everything and denied those; a super user.
The last two are a stranger and an owner who name a topic that does not exist."""
WITHOUT_TOPIC: Final = ("lost", "finder")
PASSWORD: Final = "secret"
GROUP_KINDS: Final = ("consumer", "share", "streams")
LONG_MS: Final = "600000"
"""Members stay until all have asked."""
BATCH: Final = 100
"""How many rules or topics are made with one request."""

_TYPES: Final = {
    "T": ResourceType.TOPIC,
    "N": ResourceType.TOPIC,
    "G": ResourceType.GROUP,
    "X": ResourceType.TRANSACTIONAL_ID,
    "C": ResourceType.CLUSTER,
    "U": ResourceType.USER,
}
"""A topic, a new topic, a group, a transactional id, the cluster, a user."""


class Case(NamedTuple):
    """One request, and the rights it takes, such as `READ G, DESCRIBE T`.

    rights_cases.txt has them all, and says what may stand in a request.
    """

    name: str
    api: str
    version: int
    needs: str
    fields: dict[str, Any]
    before: tuple[tuple[str, int, dict[str, Any]], ...] = ()
    """Requests that a super user sends first: API, version, fields."""
    is_at_controller: bool = False

    @property
    def has_topic(self) -> bool:
        return "$T" in str((self.fields, self.before)) or "$id" in str((self.fields, self.before))

    def user(self, asker: str) -> str:
        return "admin" if asker == "admin" else f"{self.name.replace('-', '_')}_{asker}"

    def names(self, asker: str) -> dict[str, str]:
        kinds = {"T": "topic", "N": "new", "G": "group", "X": "transaction", "U": "user"}
        return {f"${each}": f"{self.name}-{asker}-{kind}" for each, kind in kinds.items()}

    def rules(self, asker: str) -> Iterator[tuple[ResourceType, str, Operation, Permission]]:
        """The access control lists of an asker."""
        needs = [each.split() for each in self.needs.split(", ") if each]
        names = self.names(asker) | {"$C": CLUSTER_NAME}
        if asker == "describer":
            for letter in dict.fromkeys(letter for _, letter in needs if letter != "U"):
                yield _TYPES[letter], names[f"${letter}"], Operation.DESCRIBE, Permission.ALLOW
        if asker == "denied":
            for each in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID):
                yield each, "*", Operation.ALL, Permission.ALLOW
            yield ResourceType.CLUSTER, CLUSTER_NAME, Operation.ALL, Permission.ALLOW
        if asker in ("owner", "finder", "denied"):
            permission = Permission.DENY if asker == "denied" else Permission.ALLOW
            for operation, letter in needs:
                name = f"User:{names['$U']}" if letter == "U" else names[f"${letter}"]
                yield _TYPES[letter], name, Operation[operation], permission


# --- the cases --------------------------------------------------------------------------------------------------------


def _read_cases() -> dict[str, list[Case]]:
    """The cases of each part of the file."""
    parts: dict[str, list[Case]] = {}
    for line in CASES_FILE.read_text().splitlines():
        words = [each.strip() for each in line.split(" | ")]
        if line.startswith("["):
            cases = parts[line.strip("[]")] = []
        elif words[0] == "after":
            cases[-1] = cases[-1]._replace(before=(*cases[-1].before, (*_api(words[1]), json.loads(words[2]))))
        elif line and not line.startswith("#"):
            cases.append(Case(words[0], *_api(words[1]), words[2], json.loads(words[3])))
    return parts


def _api(text: str) -> tuple[str, int]:
    name, version = text.split()
    return name, int(version)


def _at_controller(parts: dict[str, list[Case]]) -> list[Case]:
    """What controllers serve as brokers do, and what they alone serve."""
    served = {name for name, each in MESSAGES.items() if each.kind == "request" and "controller" in each.listeners}
    alike = [each for each in parts["brokers"] if f"{each.api}Request" in served and each.api != "Fetch"]
    return [
        each._replace(name=f"controller-{each.name}", is_at_controller=True)
        for each in [*alike, *parts["controllers"]]
        if not each.before
    ]


_PARTS: Final = _read_cases()
CASES: Final = [*_PARTS["brokers"], *_at_controller(_PARTS)]
NEWER: Final = _PARTS["newer"]
_BATCHES: Final = {
    "$batch": batch(b"one"),
    "$batch-in-transaction": batch(b"one", producer_id=4_000, producer_epoch=0, base_sequence=0, is_transactional=True),
}


# --- asking -----------------------------------------------------------------------------------------------------------


def settings(cases: Iterable[Case]) -> dict[str, str]:
    """What a node is set to, beside its listeners: LOGIN and CONTROLLER want a login."""
    users = dict.fromkeys(case.user(asker) for case in cases for asker in ASKERS)
    own = " ".join(f'user_{user}="{PASSWORD}"' for user in users)
    jaas = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="admin" password="{PASSWORD}" user_admin="{PASSWORD}" {own};'
    )
    return {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": jaas,
        "listener.name.controller.plain.sasl.jaas.config": jaas,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
        "auto.create.topics.enable": "true",
        "group.streams.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "delegation.token.secret.key": "the secret key of all tokens",
        **{f"group.{kind}.{most}session.timeout.ms": LONG_MS for kind in GROUP_KINDS for most in ("", "max.")},
    }


class Asking:
    """The askers of all cases, at one node."""

    def __init__(self, cases: Iterable[Case], login: RawClient, controller: RawClient) -> None:
        self._cases = list(cases)
        self._admin = login.connect()
        log_in(self._admin, "admin")
        self._doors = {False: login, True: controller}
        self._ids: dict[str, bytes] = {}

    def prepare(self) -> None:
        """Make the topics, the rules, and what requests are about."""
        self._make_topics()
        self._make_rules()
        for key_type, key in enumerate(("group", "transaction", f"group:{_ANY_ID}:0")):
            self._send_first(6, request("FindCoordinator", {"key_type": key_type, "coordinator_keys": [key]}))
        for case in self._cases:
            for asker in ASKERS:
                for api, version, fields in case.before if asker not in WITHOUT_TOPIC else ():
                    self._send_first(version, self._filled(fields, case, asker, api))

    def _make_topics(self) -> None:
        names = [
            case.names(asker)["$T"]
            for case in self._cases
            for asker in ASKERS
            if case.has_topic and asker not in WITHOUT_TOPIC
        ]
        for at in range(0, len(names), BATCH):
            topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names[at : at + BATCH]]
            answer = self._admin.ask(request("CreateTopics", {"topics": topics}), 7)
            assert not any(each.error_code for each in answer.topics), answer
            self._ids |= {each.name: each.topic_id for each in answer.topics}
        if names:
            self._await_leader(names[-1])

    def _await_leader(self, name: str) -> None:
        wanted = {"replica_id": -1, "topics": [{"name": name, "partitions": [{"timestamp": -1}]}]}
        for _ in range(READY_ATTEMPTS):
            if not self._admin.ask(request("ListOffsets", wanted), 7).topics[0].partitions[0].error_code:
                return
        raise AssertionError(f"{name} does not become usable")

    def _make_rules(self) -> None:
        rules = [
            {
                "resource_type": kind,
                "resource_name": name,
                "resource_pattern_type": PatternType.LITERAL,
                "principal": f"User:{case.user(asker)}",
                "host": "*",
                "operation": operation,
                "permission_type": permission,
            }
            for case in self._cases
            for asker in ASKERS
            for kind, name, operation, permission in case.rules(asker)
        ]
        for at in range(0, len(rules), BATCH):
            answer = self._admin.ask(request("CreateAcls", {"creations": rules[at : at + BATCH]}), 3)
            assert not any(each.error_code for each in answer.results), answer
        self._await_rule(rules[-1]["principal"])

    def _await_rule(self, principal: object) -> None:
        """A broker may follow the controller a little later."""
        every = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
        wanted = {**every, "resource_name_filter": None, "host_filter": None, "principal_filter": principal}
        for _ in range(READY_ATTEMPTS):
            if self._admin.ask(request("DescribeAcls", wanted), 3).resources:
                return
        raise AssertionError(f"the broker never learns of the rules of {principal}")

    def _send_first(self, version: int, message: Any) -> None:
        """Send what makes something, until its coordinator is there."""
        for _ in range(READY_ATTEMPTS):
            said = codes(self._admin.ask(message, version))
            if not said & _LATER:
                assert said <= {0}, (message, said)
                return
        raise AssertionError(f"{message} stays without a coordinator")

    def answer(self, case: Case, asker: str) -> str:
        """What an asker is told, in one line."""
        message = self._filled(case.fields, case, asker, case.api)
        connection = self._doors[case.is_at_controller].connect()
        try:
            if case.api != "SaslHandshake":
                log_in(connection, case.user(asker))
            for _ in range(READY_ATTEMPTS):
                said = connection.ask(message, case.version)
                if not codes(said) & _LATER:
                    return summary(said)
            raise AssertionError(f"{case.name} stays without a coordinator")
        except Closed:
            return "closed"
        finally:
            connection.close()

    def _filled(self, fields: dict[str, Any], case: Case, asker: str, api: str) -> Any:
        names = case.names(asker)
        binary = {**_BATCHES, "$id": self._ids.get(names["$T"], b"\x01" * 16)}
        return request(api, _fill(fields, names | {name: b64encode(data).decode() for name, data in binary.items()}))


_ANY_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
_LATER: Final = frozenset({14, 15, 16})
"""A coordinator is loading, not available, or elsewhere: as long as its topic is new."""


def log_in(connection: Connection, user: str) -> None:
    assert connection.ask(SaslHandshakeRequest("PLAIN"), 1).error_code == 0
    said = connection.ask(SaslAuthenticateRequest(f"\0{user}\0{PASSWORD}".encode()), 2)
    assert said.error_code == 0, said


def request(api: str, fields: dict[str, Any]) -> Any:
    """A request from its fields."""
    return _build(fields, [getattr(types, f"{api}Request")])


def _build(value: Any, kinds: list[Any]) -> Any:
    """A value of one of some kinds: structs of dicts, tuples of lists, bytes of base64."""
    if isinstance(value, dict):
        (struct,) = (each for each in kinds if isinstance(each, type) and issubclass(each, msgspec.Struct))
        fields = {each.encode_name: _kinds(each.type) for each in msgspec.structs.fields(struct)}
        return struct(**{name: _build(each, fields[name]) for name, each in value.items()})
    if isinstance(value, list):
        return tuple(_build(each, kinds) for each in value)
    return b64decode(value) if isinstance(value, str) and str not in kinds else value


def _kinds(kind: Any) -> list[Any]:
    """A type, and all that it is made of."""
    return [kind, *(part for each in get_args(kind) for part in _kinds(each))]


def _fill(value: Any, values: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _fill(each, values) for key, each in value.items()}
    if isinstance(value, list):
        return [_fill(each, values) for each in value]
    return values.get(value, value) if isinstance(value, str) else value


# --- what an answer says about rights ---------------------------------------------------------------------------------


def summary(answer: msgspec.Struct) -> str:
    """Error codes, permitted operations, hidden names and ids, and how many things are shown: 0, 1, many."""
    return " ".join(dict.fromkeys(_said(answer, "")))


def _said(value: object, path: str) -> Iterator[str]:
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name not in _LEFT_OUT:
                yield from _said(getattr(value, name), f"{path}.{name}" if path else name)
    elif isinstance(value, tuple) and (not value or isinstance(value[0], msgspec.Struct)):
        yield f"{path}:{'many' if len(value) > 1 else len(value)}"
        for each in value:
            yield from _said(each, path)
    elif path.endswith(("error_code", "authorized_operations")):
        yield f"{path}={value}"
    elif path.endswith("topic_id") and value == bytes(16):
        yield f"{path}=zero"
    elif path.endswith("name") and value is None:
        yield f"{path}=null"


_LEFT_OUT: Final = frozenset(
    {"unknown_tags", "brokers", "node_endpoints", "api_keys", "supported_features", "configs", "assignment"}
)
"""What differs between nodes and moments, whoever asks."""


def codes(answer: object) -> set[int]:
    """The error codes of an answer, at all levels."""
    if isinstance(answer, tuple):
        return set().union(*(codes(each) for each in answer))
    if not isinstance(answer, msgspec.Struct):
        return set()
    own = {getattr(answer, name) for name in answer.__struct_fields__ if name.endswith("error_code")}
    return own.union(*(codes(getattr(answer, name)) for name in answer.__struct_fields__))


# --- the answers of Apache Kafka --------------------------------------------------------------------------------------


def read_answers(path: Path) -> dict[tuple[str, str], str]:
    """(case, asker) -> the answer."""
    found = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            case, asker, said = line.split(maxsplit=2)
            found[case, asker] = said
    return found
