"""Tokens: where they come from, and how they are shown to a broker."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from ottla.client.errors import AuthenticationError, ConfigurationError
from ottla.client.oauth import ClientCredentials, OAuthBearer, token_function
from ottla.client.properties import settings_of
from ottla.security.errors import LoginRefused


class Endpoint:
    """A token endpoint on loopback that gives t1, t2, ..."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.answer: Any = None
        self.raw = b""
        """Sent instead of anything that HTTP knows."""
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                endpoint.asked.append((self.headers["Authorization"], parse_qs(body)))
                if endpoint.raw:
                    self.wfile.write(endpoint.raw)
                    return
                usual = {"access_token": f"t{len(endpoint.asked)}", "expires_in": 100}
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(endpoint.answer or usual).encode())

            def log_message(self, *words: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/token"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def test_a_token_is_shown():
    exchange = OAuthBearer(lambda: "abc").exchange()
    assert next(exchange) == b"n,,\x01auth=Bearer abc\x01\x01"
    with pytest.raises(StopIteration):
        exchange.send(b"")


def test_a_token_that_is_not_taken():
    exchange = OAuthBearer(lambda: "abc").exchange()
    next(exchange)
    assert exchange.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(LoginRefused, match=r"rejected the token: .*invalid_token"):
        exchange.send(b"")


def test_an_endpoint_is_asked_again_before_the_token_ends(endpoint: Endpoint):
    now = [0.0]
    tokens = ClientCredentials(endpoint.url, "me", "pencil", "kafka", now_s=lambda: now[0])
    assert (tokens(), tokens()) == ("t1", "t1")
    now[0] = 80
    assert tokens() == "t2"
    login, form = endpoint.asked[0]
    assert login == "Basic " + base64.b64encode(b"me:pencil").decode()
    assert form == {"grant_type": ["client_credentials"], "scope": ["kafka"]}
    assert "pencil" not in repr(tokens)


@pytest.mark.parametrize("answer", [{"error": "no"}, ["no"]])
def test_an_answer_without_a_token(endpoint: Endpoint, answer: Any):
    endpoint.answer = answer
    with pytest.raises(AuthenticationError, match="contains no access_token"):
        ClientCredentials(endpoint.url, "me", "pencil")()


@pytest.mark.parametrize("life", [{}, {"expires_in": None}])
def test_a_token_whose_end_is_not_told_is_used_once(endpoint: Endpoint, life: dict[str, None]):
    tokens = ClientCredentials(endpoint.url, "me", "pencil", now_s=lambda: 0.0)
    endpoint.answer = {"access_token": "first"} | life
    assert tokens() == "first"
    endpoint.answer = {"access_token": "second"} | life
    assert tokens() == "second"


def test_an_endpoint_that_does_not_speak_http(endpoint: Endpoint):
    endpoint.raw = b"\x15\x03\x03\x00\x02\x02\x46"  # TLS
    with pytest.raises(AuthenticationError, match="no token from http://"):
        ClientCredentials(endpoint.url, "id", "secret")()


def test_no_endpoint():
    with pytest.raises(AuthenticationError, match=r"no token from http://127\.0\.0\.1:1/"):
        ClientCredentials("http://127.0.0.1:1/", "me", "pencil")()
    with pytest.raises(ConfigurationError, match="it must start with https://"):
        ClientCredentials("file:///etc/passwd", "me", "pencil")


def token() -> str:
    return "from-a-function"


def test_a_function_is_named():
    assert token_function(f"{__name__}:token") is token
    for name in ("nowhere:token", f"{__name__}:nothing", __name__, f"{__name__}:pytest"):
        with pytest.raises(ConfigurationError, match=r"ottla\.oauth\.callback"):
            token_function(name)


def login(**properties: str) -> Any:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    return settings_of(given | {name.replace("_", "."): value for name, value in properties.items()})["sasl"]


def test_properties(endpoint: Endpoint):
    assert b"from-a-function" in next(login(ottla_oauth_callback=f"{__name__}:token").exchange())
    jaas = 'OAuthBearerLoginModule required clientId="me" clientSecret="pencil" scope="kafka";'
    url = {"sasl_oauthbearer_token_endpoint_url": endpoint.url}
    assert b"Bearer t1" in next(login(sasl_jaas_config=jaas, **url).exchange())
    given = "sasl_oauthbearer_client_credentials_client"
    assert b"Bearer t2" in next(login(**{f"{given}_id": "me", f"{given}_secret": "x"}, **url).exchange())
    with pytest.raises(ConfigurationError, match=r"client\.id and .* are not set"):
        login(**url)
    with pytest.raises(ConfigurationError, match=r"set sasl\.oauthbearer\.token\.endpoint\.url"):
        login()
