"""PLAIN and SCRAM as conversations: the examples of the standards, and brokers that cheat."""

import hashlib

import pytest

from ottla.security.errors import LoginRefused, SecuritySettingError
from ottla.security.sasl_client import Plain, Sasl, Scram, mechanism_named
from ottla.security.scram_messages import escaped_name
from tests.unit.client.sasl_server import Server

# RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def scram(mechanism: str = "SCRAM-SHA-256", username: str = "user", password: str = "pencil") -> Scram:
    return Scram(mechanism, username, password, nonce=lambda: NONCE)


def test_plain_is_one_message():
    exchange = Plain("alice", "s3cret").exchange()
    assert next(exchange) == b"\0alice\0s3cret"
    with pytest.raises(StopIteration):
        exchange.send(b"")


def test_the_example_of_rfc_7677():
    exchange = scram().exchange()
    assert next(exchange) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert exchange.send(SERVER_FIRST) == CLIENT_FINAL
    with pytest.raises(StopIteration):
        exchange.send(SERVER_FINAL)


@pytest.mark.parametrize(("mechanism", "hash_name"), [("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")])
@pytest.mark.parametrize("password", ["pencil", "pä,=ss wörd"])
def test_both_hashes_convince_a_server_and_are_convinced(mechanism: str, hash_name: str, password: str):
    server = Server(hash_name, password)
    login = scram(mechanism, password=password)
    for _ in range(2):  # the second time the salted password is at hand
        exchange = login.exchange()
        final = exchange.send(server.first(next(exchange)))
        answer = server.final(final)
        assert answer is not None
        with pytest.raises(StopIteration):
            exchange.send(answer)


def test_a_wrong_password_does_not_convince():
    server = Server("sha512", "pencil")
    exchange = scram("SCRAM-SHA-512", password="pen").exchange()
    assert server.final(exchange.send(server.first(next(exchange)))) is None


def test_another_salt_is_not_answered_with_the_old_password():
    server, other = Server("sha256", "pencil"), Server("sha256", "pencil")
    other.salt = b"another salt"
    other.salted = hashlib.pbkdf2_hmac("sha256", b"pencil", other.salt, 4096)
    login = scram()
    for each in (server, other, server):
        exchange = login.exchange()
        assert each.final(exchange.send(each.first(next(exchange)))) is not None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=100", "100 iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=2000000000", "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=many", "cannot be read"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=!!,i=4096", "cannot be read"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,i=4096", "no salt"),
        (b"\xff\xfe", "not valid text"),
        (b"", "nonce"),
    ],
)
def test_a_broker_that_cheats_in_its_first_message_is_found_out(answer: bytes, reason: str):
    exchange = scram().exchange()
    next(exchange)
    with pytest.raises(LoginRefused, match=reason):
        exchange.send(answer)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(b"v=AAAA", "did not prove"), (b"", "did not prove"), (b"e=other-error", "responded with other-error")],
)
def test_a_broker_that_does_not_know_the_password_is_found_out(answer: bytes, reason: str):
    exchange = scram().exchange()
    next(exchange)
    exchange.send(SERVER_FIRST)
    with pytest.raises(LoginRefused, match=reason):
        exchange.send(answer)


def test_names_cannot_break_out_of_their_field():
    assert escaped_name("a,b=c") == "a=2Cb=3Dc"
    assert next(scram(username="a,b=c").exchange()) == b"n,,n=a=2Cb=3Dc,r=" + NONCE.encode()


def test_every_login_has_a_nonce_of_its_own():
    login = Scram("SCRAM-SHA-256", "user", "pencil")
    assert next(login.exchange()) != next(login.exchange())


@pytest.mark.parametrize("login", [Plain("alice", "s3cret"), scram(username="alice", password="s3cret")])
def test_a_password_is_not_shown(login: Sasl):
    assert "alice" in repr(login)
    assert "s3cret" not in repr(login)


def test_mechanisms_have_kafka_s_names():
    assert mechanism_named("PLAIN", "a", "b").mechanism == "PLAIN"
    assert mechanism_named("SCRAM-SHA-512", "a", "b").mechanism == "SCRAM-SHA-512"
    with pytest.raises(SecuritySettingError, match="GSSAPI"):
        mechanism_named("GSSAPI", "a", "b")
    with pytest.raises(SecuritySettingError, match="SCRAM-SHA-1"):
        Scram("SCRAM-SHA-1", "a", "b")
    with pytest.raises(SecuritySettingError, match="NUL"):
        Plain("a\0b", "c")
