"""Secrets are printed in no form: not as text, not as hex, not in base64; of whole messages and of halves."""

import json
from collections.abc import Iterator

import pytest

from ottla import wire
from ottla.explain.as_json import body_json, tree_json
from ottla.explain.dissect import Dissection, dissect, dissect_batches
from ottla.explain.exchanges import Connection, Exchange, Side
from ottla.explain.facts import TopicNames, exchange_facts
from ottla.explain.redact import RULES, is_sensitive_setting
from ottla.explain.show_exchange import Label, exchange_block, exchange_json, exchange_line
from ottla.explain.show_tree import tree_lines
from ottla.explain.tree import Node
from ottla.wire import frames, types
from ottla.wire.batch import Compression
from ottla.wire.index import MESSAGES
from ottla.wire.schemas import message_schema
from ottla.wire.text import Field
from tests.unit.explain import secrets
from tests.unit.explain.secrets import CASES, SECRET, TEXT, Case, leaks

LABEL = Label(1, "client", "broker")


def everything(taken_apart: Dissection, data: bytes) -> str:
    """All that can be printed of a message."""
    lines = [
        "".join(piece.text for piece in line)
        for width in (40, 80, 160)
        for line in tree_lines(taken_apart.nodes, data, width, shows_marks=True)
    ]
    trees = json.dumps([[tree_json(node), body_json(node)] for node in taken_apart.nodes])
    return "\n".join([*lines, trees, str(taken_apart.error)])


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} v{case.version}")
def test_whole_messages_keep_their_secrets(case: Case):
    printed = everything(dissect(case.frame, case.name, case.version, case.wrapping), case.frame)
    assert case.name in printed
    assert not leaks(printed)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} v{case.version}")
def test_half_messages_keep_them_too(case: Case):
    for length in range(5, len(case.frame)):
        data = case.frame[:length]
        assert not leaks(everything(dissect(data, case.name, case.version, case.wrapping), data))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} v{case.version}")
@pytest.mark.parametrize("is_paired", [True, False], ids=["paired", "unpaired"])
def test_exchanges_keep_them(case: Case, is_paired: bool):
    for exchange in exchanges_with(case, is_paired=is_paired):
        assert not leaks(printed_exchange(exchange))


def exchanges_with(case: Case, *, is_paired: bool) -> Iterator[Exchange]:
    connection = Connection()
    if MESSAGES[case.name].kind == "request":
        events = [*connection.receive(Side.CLIENT, case.frame, 0), *connection.close(0)]
    else:
        request = getattr(types, case.name.removesuffix("Response") + "Request")()
        if is_paired:
            connection.receive(Side.CLIENT, frames.write_request(request, case.version, correlation_id=9), 0)
        events = [*connection.receive(Side.BROKER, case.frame, 0), *connection.close(0)]
    found = [event for event in events if isinstance(event, Exchange)]
    assert found
    yield from found


def printed_exchange(exchange: Exchange) -> str:
    topic_names = TopicNames()
    facts = exchange_facts(exchange, topic_names)
    lines = [
        exchange_line(exchange, facts, LABEL, 2_000),
        *exchange_block(exchange, facts, LABEL, 2_000, topic_names),
    ]
    objects = [
        json.dumps(found)
        for with_records in (True, False)
        for found in exchange_json(exchange, facts, LABEL, topic_names, with_records=with_records)
    ]
    return "\n".join([*("".join(piece.text for piece in line) for line in lines), *objects])


def test_bare_tokens_are_not_shown():
    connection = Connection()
    handshake = frames.write_request(types.SaslHandshakeRequest(mechanism="PLAIN"), 0, correlation_id=1)
    accepted = frames.write_response(types.SaslHandshakeResponse(), 0, correlation_id=1)
    connection.receive(Side.CLIENT, handshake, 0)
    connection.receive(Side.BROKER, accepted, 0)
    connection.receive(Side.CLIENT, frames.frame(b"\0alice\0" + SECRET), 0)
    [exchange] = connection.receive(Side.BROKER, frames.frame(SECRET), 0)
    assert isinstance(exchange, Exchange)
    printed = printed_exchange(exchange)
    assert "SASL token" in printed
    assert not leaks(printed)


@pytest.mark.parametrize("topic", ["__cluster_metadata", None], ids=["topic known", "by content"])
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_a_metadata_log_keeps_its_credentials(topic: str | None, compression: Compression):
    data = secrets.batches(compression)
    nodes = tuple(dissect_batches(data, topic))
    printed = everything(Dissection("RecordBatch", 2, nodes, None, 0), data)
    assert "UserScramCredentialRecord" in printed
    assert not leaks(printed)


def test_what_is_not_secret_is_shown():
    case = Case(secrets.settings_request("IncrementalAlterConfigsRequest"), 1)
    printed = everything(dissect(case.frame, case.name, case.version, case.wrapping), case.frame)
    assert "60000" in printed
    assert "listener.name.sasl.ssl.keystore.password" in printed
    assert f"withheld ({len(TEXT) + 1} bytes)" in printed


def test_the_look_out_sees_a_leak():
    spaced = SECRET.hex(" ")
    for output in (TEXT, f"xx {TEXT[3:9]}", spaced, SECRET.hex().upper(), "".join(made_base64())):
        assert leaks(output)
    assert not leaks("nothing to see here 0123456789abcdef")


def made_base64() -> Iterator[str]:
    import base64

    for before in (b"", b"a", b"ab"):
        yield base64.b64encode(before + SECRET).decode()


@pytest.mark.parametrize(
    "name",
    [
        "ssl.keystore.password",
        "listener.name.external.ssl.key.password",
        "ssl.truststore.certificates",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "sasl.jaas.config",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config",
        "delegation.token.secret.key",
        "password.encoder.secret",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "SCRAM-SHA-256",
        "my.plugin.api-key",
    ],
)
def test_settings_that_are_secrets(name: str):
    assert is_sensitive_setting(name)


@pytest.mark.parametrize(
    "name",
    ["log.retention.ms", "cleanup.policy", "max.message.bytes", "listeners", "advertised.listeners", "num.partitions"],
)
def test_settings_that_are_none(name: str):
    assert not is_sensitive_setting(name)


def test_every_rule_names_a_field_that_exists():
    for name, rules in RULES.items():
        for rule in rules:
            fields = message_schema(name).fields
            *outer, last = rule.path.replace("[]", "").split(".")
            for step in outer:
                fields = message_schema(name).struct_fields(next(f.type for f in fields if f.name == step)) or ()
            here = {found.name for found in fields}
            assert {last, rule.named_by or last, rule.flagged_by or last} <= here, (name, rule)


def test_every_field_whose_name_smells_of_a_secret_has_a_rule():
    """A new message with a credential must not slip through."""
    smells = ("hmac", "salt", "password", "authbytes", "storedkey", "serverkey", "secret", "credential", "proof")
    innocent = {"CredentialInfos", "ScramCredentialDeletion"}
    for name in wire.names():
        smelling = {
            field.name
            for field in all_fields(name)
            if any(smell in field.name.lower() for smell in smells) and field.type in ("bytes", "string")
        }
        covered = {rule.path.split(".")[-1] for rule in RULES.get(name, ())}
        assert smelling - innocent <= covered, name


def all_fields(name: str) -> Iterator[Field]:
    schema = message_schema(name)
    stack = [*schema.fields, *(field for struct in schema.structs for field in struct.fields)]
    while stack:
        field = stack.pop()
        yield field
        stack += field.fields


def test_withholding_forgets_the_value():
    node = Node("Hmac", "bytes", 3, 9, value=SECRET, children=[Node("x", "bytes", 3, 9, value=SECRET)])
    node.withhold()
    assert "Tr0ub" not in repr(node)
