"""Where the mechanisms of listeners find users, delegation tokens and the keys of token issuers."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.security.errors import SecuritySettingError
from ottla.security.sasl_server import ScramCredential, TokenLogin, derived_credential
from ottla.security.scram_messages import HASHES
from ottla.wire.access import SCRAM_MECHANISMS

if TYPE_CHECKING:
    from ottla.broker.loop.clock import Clock
    from ottla.broker.loop.randomness import Randomness
    from ottla.broker.network.listener_security import ListenerSettings
    from ottla.wire.types.cluster_metadata import DelegationTokenRecord, UserScramCredentialRecord

__all__ = ["NodeCredentials"]

log = logging.getLogger(__name__)

KEYS_MAX_BYTES: Final = 1 << 20
FETCH_SECONDS: Final = 10.0
UNKNOWN_KEY_PAUSE_MS: Final = 10_000
"""How long nobody makes the broker look for new keys by showing tokens of unknown ones."""
_FILE: Final = "file://"


class Image(Protocol):
    """What is needed of the metadata."""

    @property
    def scram(self) -> Mapping[tuple[int, str], UserScramCredentialRecord]: ...
    @property
    def tokens(self) -> Mapping[str, DelegationTokenRecord]: ...


class TokenSecrets(Protocol):
    @property
    def is_enabled(self) -> bool: ...
    def of(self, token_id: str) -> bytes: ...


Offload = Callable[[Callable[[], None], Callable[[], None]], Any]


class _IssuerKeys:
    """The keys of one issuer."""

    def __init__(self, url: str, refresh_ms: int, retry_ms: int) -> None:
        self.url = url
        self.refresh_ms = refresh_ms
        self.retry_ms = retry_ms
        self.keys: Mapping[str | None, Any] = {}
        self.due_at_ms = 0
        self.is_fetching = False
        self.looked_at_ms = 0


class NodeCredentials:
    def __init__(
        self,
        image: Image,
        token_secrets: TokenSecrets,
        clock: Clock,
        randomness: Randomness,
        offload: Offload,
    ) -> None:
        self._image = image
        self._token_secrets = token_secrets
        self._clock = clock
        self._randomness = randomness
        self._offload = offload
        self._derived: dict[tuple[str, str], ScramCredential] = {}
        self._issuers: dict[str, _IssuerKeys] = {}
        self._salting = b""
        self.wall_ms = clock.wall_ms

    @property
    def salting(self) -> bytes:
        """A secret of this node, drawn when it is first needed."""
        if not self._salting:
            self._salting = self._randomness.uuid() + self._randomness.uuid()
        return self._salting

    def nonce(self) -> str:
        return self._randomness.uuid().hex()

    # --- SCRAM

    def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        record = self._image.scram.get((SCRAM_MECHANISMS[mechanism], user))
        if record is None:
            return None
        return ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)

    def token_login(self, mechanism: str, token_id: str) -> TokenLogin | None:
        """A delegation token that has not expired. Its secret serves as password."""
        token = self._image.tokens.get(token_id)
        if token is None or not self._token_secrets.is_enabled:
            return None
        expires_at_ms = min(token.max_timestamp, token.expiration_timestamp)
        if expires_at_ms < self.wall_ms():
            return None
        credential = self._derived.get((mechanism, token_id))
        if credential is None:
            for known in [each for each in self._derived if each[1] not in self._image.tokens]:
                del self._derived[known]
            password = b64encode(self._token_secrets.of(token_id)).decode()
            credential = derived_credential(HASHES[mechanism], password, self._randomness.uuid())
            self._derived[mechanism, token_id] = credential
        return TokenLogin(credential, token.owner.partition(":")[2], expires_at_ms)

    # --- keys of issuers

    def signing_key(self, url: str, key_id: str | None) -> Any:  # noqa: ANN401
        """A key of an issuer. An unknown one makes the broker look for new keys, now and then."""
        issuer = self._issuers[url]
        found = issuer.keys.get(key_id)
        now_ms = self._clock.monotonic_ms()
        if found is None and now_ms - issuer.looked_at_ms >= UNKNOWN_KEY_PAUSE_MS:
            issuer.due_at_ms = issuer.looked_at_ms = now_ms
            self.refresh_keys()
        return found

    def watch_keys(self, url: str, settings: ListenerSettings) -> None:
        if url not in self._issuers:
            issuer = self._issuers[url] = _IssuerKeys(
                url,
                settings["sasl.oauthbearer.jwks.endpoint.refresh.ms"],
                settings["sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"],
            )
            if url.startswith(_FILE):
                issuer.keys = _read(url)  # a file that is not there is told at the start
                issuer.due_at_ms = self._clock.monotonic_ms() + issuer.refresh_ms
        self.refresh_keys()

    def refresh_keys(self) -> None:
        """Fetch what is due, in a thread."""
        now_ms = self._clock.monotonic_ms()
        for issuer in self._issuers.values():
            if now_ms >= issuer.due_at_ms and not issuer.is_fetching:
                self._fetch(issuer)

    def _fetch(self, issuer: _IssuerKeys) -> None:
        issuer.is_fetching = True
        fetched: list[Mapping[str | None, Any]] = []
        failures: list[Exception] = []

        def work() -> None:
            try:
                fetched.append(_read(issuer.url))
            except (OSError, ValueError) as error:
                failures.append(error)

        def then() -> None:
            issuer.is_fetching = False
            now_ms = self._clock.monotonic_ms()
            if fetched:
                issuer.keys = fetched[0]
                issuer.due_at_ms = now_ms + issuer.refresh_ms
            else:
                log.warning("cannot fetch the keys from %s: %s", issuer.url, failures[0])
                issuer.due_at_ms = now_ms + issuer.retry_ms

        self._offload(work, then)


def _read(url: str) -> Mapping[str | None, Any]:
    """The keys at an address. OSError or ValueError if there are none."""
    from ottla.security.jwt import read_keys

    if url.startswith(_FILE):
        try:
            with open(url.removeprefix(_FILE), "rb") as file:
                return read_keys(file.read(KEYS_MAX_BYTES))
        except OSError as error:
            raise SecuritySettingError(f"sasl.oauthbearer.jwks.endpoint.url: {error}") from None
    if not url.startswith(("https://", "http://")):
        raise SecuritySettingError(f"sasl.oauthbearer.jwks.endpoint.url is {url}; it begins with https:// or file://")
    import urllib.request  # most nodes never need it, and it costs time at each start

    with urllib.request.urlopen(url, timeout=FETCH_SECONDS) as answer:  # noqa: S310, RUF100  (the scheme was checked)
        return read_keys(answer.read(KEYS_MAX_BYTES))
