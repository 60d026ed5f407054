"""Logging in with a token (OAUTHBEARER, RFC 7628): where tokens come from, and how they are shown.

A token comes from a function, or from a token endpoint by the client credentials grant (RFC 6749, section 4.4), as
Kafka's own clients do it. It is fetched while a connection is opened, which waits for it.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from http.client import HTTPException
from importlib import import_module
from typing import Any, Final

from ottla.client.errors import AuthenticationError, ConfigurationError
from ottla.client.sasl import Exchange
from ottla.security.errors import LoginRefused

__all__ = ["ClientCredentials", "OAuthBearer", "token_function"]

SEPARATOR: Final = "\x01"
REFUSED: Final = b"\x01"
"""What a client says to a broker that has explained why it does not take the token."""
TOKEN_TIMEOUT_S: Final = 10.0
LIFETIME_SHARE: Final = 0.8
"""A token is used for this part of its life."""
SCHEMES: Final = ("http://", "https://")


class OAuthBearer:
    """Shows the broker a token."""

    mechanism: Final = "OAUTHBEARER"

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    def __repr__(self) -> str:
        return "OAuthBearer()"

    def exchange(self) -> Exchange:
        said = yield f"n,,{SEPARATOR}auth=Bearer {self._token()}{SEPARATOR}{SEPARATOR}".encode()
        if said:
            yield REFUSED
            raise LoginRefused(f"the broker rejected the token: {said.decode(errors='replace')}")


def token_function(name: str) -> Callable[[], str]:
    """The function that `module:function` names."""
    module, colon, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute) if colon else None
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"ottla.oauth.callback: {name!r} cannot be loaded: {error}") from None
    if not callable(found):
        raise ConfigurationError(f"ottla.oauth.callback: {name!r} is not a function; write module:function")
    return found  # type: ignore[no-any-return]


class ClientCredentials:
    """Tokens that an endpoint gives for an id and a secret; each is used until shortly before its end."""

    def __init__(
        self,
        url: str,
        client_id: str,
        client_secret: str,
        scope: str | None = None,
        *,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        if not url.startswith(SCHEMES):
            raise ConfigurationError(
                f"sasl.oauthbearer.token.endpoint.url is {url!r}; it must start with https:// or http://"
            )
        self._url = url
        self._client_id = client_id
        self._client_secret = client_secret
        self._scope = scope
        self._now_s = now_s
        self._token = ""
        self._until_s = float("-inf")

    def __repr__(self) -> str:
        return f"ClientCredentials({self._url!r}, {self._client_id!r})"

    def __call__(self) -> str:
        if self._now_s() >= self._until_s:
            answer = self._ask()
            if not isinstance(answer.get("access_token"), str):
                raise AuthenticationError(None, f"the response of {self._url} contains no access_token")
            self._token = answer["access_token"]
            self._until_s = self._now_s() + LIFETIME_SHARE * float(answer.get("expires_in") or 0)
        return self._token

    def _ask(self) -> dict[str, Any]:
        form = {"grant_type": "client_credentials"} | ({"scope": self._scope} if self._scope else {})
        login = b64encode(f"{self._client_id}:{self._client_secret}".encode()).decode()
        request = urllib.request.Request(  # noqa: S310, RUF100  (the scheme was checked)
            self._url,
            urllib.parse.urlencode(form).encode(),
            {"Authorization": f"Basic {login}", "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=TOKEN_TIMEOUT_S) as answer:  # noqa: S310, RUF100
                found = json.load(answer)
        except HTTPException as error:  # such as an endpoint with TLS that is asked without
            raise AuthenticationError(None, f"no token from {self._url}: {error!r}") from None
        except (OSError, ValueError) as error:
            raise AuthenticationError(None, f"no token from {self._url}: {error}") from None
        return found if isinstance(found, dict) else {}
