"""The server's side of SASL: who is let in, and that others learn nothing."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.security.errors import LoginRefused
from ottla.security.sasl_client import Plain, Sasl, Scram
from ottla.security.sasl_server import (
    Login,
    Mechanism,
    OAuthBearerServer,
    PlainServer,
    ScramCredential,
    ScramServer,
    TokenLogin,
    derived_credential,
)
from ottla.security.scram_messages import HASHES

USERS = {"ann": "s3cret", "a,b=c": "pä,=ss", "空": "ключ"}
TOKEN_ENDS_MS = 5_000


@cache
def credential(algorithm: str, password: str) -> ScramCredential:
    return derived_credential(algorithm, password, b"salt")


def scram_server(name: str = "SCRAM-SHA-256") -> ScramServer:
    algorithm = HASHES[name]

    def find(user: str) -> ScramCredential | None:
        return credential(algorithm, USERS[user]) if user in USERS else None

    def find_token(mechanism: str, token_id: str) -> TokenLogin | None:
        assert mechanism == name
        if token_id != "token-1":
            return None
        return TokenLogin(credential(algorithm, "hmac"), "owner", TOKEN_ENDS_MS)

    return ScramServer(name, find, find_token, nonce=lambda: "server-nonce", salting=b"of this node")


def log_in(server: Mechanism, client: Sasl) -> Login:
    """Let a client and a server speak to each other; the client must be convinced, too."""
    exchange = client.exchange()
    conversation = server.converse(next(exchange))
    try:
        said = next(conversation)
        while True:
            said = conversation.send(exchange.send(said))
    except StopIteration as end:
        success = end.value
    with pytest.raises(StopIteration):
        exchange.send(success.answer)
    return success.login


@pytest.mark.parametrize("user", USERS)
def test_users_log_in(user: str):
    assert log_in(PlainServer(USERS), Plain(user, USERS[user])) == Login(user)
    for name in HASHES:
        assert log_in(scram_server(name), Scram(name, user, USERS[user])) == Login(user)


def test_the_example_of_rfc_7677():
    salted = derived_credential("sha256", "pencil", b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    server = ScramServer(
        "SCRAM-SHA-256",
        {"user": salted}.get,
        lambda mechanism, token: None,
        nonce=lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        salting=b"",
    )
    conversation = server.converse(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    first = next(conversation)
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    with pytest.raises(StopIteration) as end:
        conversation.send(
            b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        )
    assert end.value.value.answer == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize(
    ("server", "clients"),
    [
        (PlainServer(USERS), [Plain("ann", "wrong"), Plain("nobody", "wrong")]),
        (
            scram_server(),
            [Scram("SCRAM-SHA-256", "ann", "wrong"), Scram("SCRAM-SHA-256", "nobody", "wrong")],
        ),
    ],
)
def test_an_unknown_user_is_refused_like_a_wrong_password(server: Mechanism, clients: list[Sasl]):
    refusals = []
    for client in clients:
        with pytest.raises(LoginRefused) as refused:
            log_in(server, client)
        refusals.append((refused.value.reason, refused.value.told))
    assert refusals[0] == refusals[1]


def test_an_unknown_user_has_the_same_salt_each_time():
    firsts = [next(scram_server().converse(b"n,,n=nobody,r=abc")) for _ in range(2)]
    assert firsts[0] == firsts[1]
    assert next(scram_server().converse(b"n,,n=nobody2,r=abc")) != firsts[0]


def test_zeros_prove_nothing_of_an_unknown_user():
    """His made-up key must fit no proof that can be worked out."""
    for proof in (bytes(32), hashlib.sha256(b"").digest()):
        conversation = scram_server().converse(b"n,,n=nobody,r=abc")
        next(conversation)
        with pytest.raises(LoginRefused):
            conversation.send(b"c=biws,r=abcserver-nonce,p=" + b64encode(proof))


def test_a_delegation_token_logs_its_owner_in_until_it_ends():
    found = log_in(scram_server(), Scram("SCRAM-SHA-256", "token-1", "hmac", is_token=True))
    assert found == Login("owner", TOKEN_ENDS_MS, is_token=True)
    with pytest.raises(LoginRefused):  # a token is no user
        log_in(scram_server(), Scram("SCRAM-SHA-256", "token-1", "hmac"))
    with pytest.raises(LoginRefused):  # and a user no token
        log_in(scram_server(), Scram("SCRAM-SHA-256", "ann", "s3cret", is_token=True))


@pytest.mark.parametrize("first", [b"ann\0ann\0s3cret", b"\0ann\0s3cret"])
def test_plain_may_name_the_user_twice(first: bytes):
    with pytest.raises(StopIteration) as end:
        next(PlainServer(USERS).converse(first))
    assert end.value.value.login.user == "ann"


@pytest.mark.parametrize(
    "first",
    [b"", b"ann", b"bob\0ann\0s3cret", b"\0\0x", b"\0ann\0", b"\0ann\0s3cret\0", b"\0\xff\0\xff", b"\0nobody\0"],
)
def test_plain_refuses_everything_else(first: bytes):
    with pytest.raises(LoginRefused) as refused:
        next(PlainServer(USERS | {"": "x"}).converse(first))
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"p=tls-unique,,n=ann,r=abc",
        b"n,a=bob,n=ann,r=abc",
        b"n,,n=a=nn,r=abc",
        b"n,,n=,r=abc",
        b"n,,n=ann,r=",
        b"n,,m=x,n=ann,r=abc",
        b"\xff",
    ],
)
def test_scram_refuses_a_first_message_that_it_does_not_understand(first: bytes):
    with pytest.raises(LoginRefused):
        next(scram_server().converse(first))


# --- OAUTHBEARER


def bearer(token: str = "abc", header: str = "n,,") -> bytes:
    return f"{header}\x01auth=Bearer {token}\x01\x01".encode()


def oauth_server() -> OAuthBearerServer:
    def validate(token: str) -> Login:
        if token != "abc":
            raise LoginRefused("a bad token")
        return Login("sub", 1)

    return OAuthBearerServer(validate)


@pytest.mark.parametrize("header", ["n,,", "n,a=sub,"])
def test_a_good_token_logs_in(header: str):
    with pytest.raises(StopIteration) as end:
        next(oauth_server().converse(bearer(header=header)))
    assert end.value.value == (b"", Login("sub", 1))


def test_a_bad_token_is_told_and_then_refused():
    conversation = oauth_server().converse(bearer("xyz"))
    assert json.loads(next(conversation))["status"] == "invalid_token"
    with pytest.raises(LoginRefused, match="a bad token"):
        conversation.send(b"\x01")


@pytest.mark.parametrize(
    "first", [b"", b"n,,", b"n,,\x01\x01", b"n,,\x01auth=Basic abc\x01\x01", b"y,,\x01auth=Bearer abc\x01\x01", b"\xff"]
)
def test_oauth_refuses_other_messages(first: bytes):
    with pytest.raises(LoginRefused):
        next(oauth_server().converse(first))


def test_a_token_of_somebody_else_is_refused():
    with pytest.raises(LoginRefused):
        next(oauth_server().converse(bearer(header="n,a=bob,")))


# --- whatever comes


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_garbage_is_refused_and_never_an_error_of_ours(data: st.DataObject):
    servers: list[tuple[Mechanism, bytes]] = [
        (PlainServer(USERS), b"\0ann\0s3cret"),
        (scram_server(), b"n,,n=ann,r=abc"),
        (oauth_server(), bearer()),
    ]
    server, good = data.draw(st.sampled_from(servers))
    conversation = server.converse(data.draw(damaged(good)))
    try:
        next(conversation)
        conversation.send(
            data.draw(damaged(b"c=biws,r=abcserver-nonce,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="))
        )
    except (LoginRefused, StopIteration):
        pass


@st.composite
def damaged(draw: st.DrawFn, good: bytes) -> bytes:
    if draw(st.booleans()):
        return draw(st.binary(max_size=60))
    made = bytearray(good)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(made)))
        made[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(made)
