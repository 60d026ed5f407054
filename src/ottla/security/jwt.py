"""JSON Web Tokens that clients show with OAUTHBEARER: whose they are, and whether they are good.

`JwtValidator` checks a token's signature with a key of its issuer, and its claims; `UnsecuredValidator` takes tokens
that nobody has signed (alg none), and is there only for whoever asks for it by name: for tests, as in Kafka. What a
token holds is never put into a text, since whoever reads it could use it.

=================================================  ========================================================
claim                                              must
=================================================  ========================================================
exp                                                be there, and not have passed
iat                                                be there, and not lie ahead
nbf                                                not lie ahead
iss                                                be sasl.oauthbearer.expected.issuer, if that is set
aud                                                have one of sasl.oauthbearer.expected.audience, if set
sasl.oauthbearer.sub.claim.name                    be a name, which becomes the principal
sasl.oauthbearer.scope.claim.name                  be a text or a list of texts, if it is there
=================================================  ========================================================
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ottla.security.errors import LoginRefused, SecuritySettingError
from ottla.security.sasl_server import Login

__all__ = ["JwtValidator", "UnsecuredValidator", "read_keys"]

Verify = Callable[[str, bytes, bytes], bool]
"""Algorithm, signed bytes and signature -> whether a key has made it."""
_SECOND_MS: Final = 1000
_TIME_MAX_S: Final = 1 << 40
_HASHES: Final = {"256": "SHA256", "384": "SHA384", "512": "SHA512"}
_CURVES: Final = {"P-256": ("SECP256R1", "ES256"), "P-384": ("SECP384R1", "ES384"), "P-521": ("SECP521R1", "ES512")}
_RSA_BITS_MIN: Final = 2048
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*")


class JwtValidator:
    """Takes tokens that an issuer has signed."""

    def __init__(
        self,
        find_key: Callable[[str | None], Verify | None],
        *,
        now_ms: Callable[[], int],
        issuer: str | None = None,
        audiences: Iterable[str] = (),
        skew_s: int = 30,
        scope_claim: str = "scope",
        sub_claim: str = "sub",
    ) -> None:
        """`find_key` is given the key id of a token, if it has one."""
        self._find_key = find_key
        self._now_ms = now_ms
        self._issuer = issuer
        self._audiences = frozenset(audiences)
        self._skew_s = skew_s
        self._scope_claim = scope_claim
        self._sub_claim = sub_claim

    def __call__(self, token: str) -> Login:
        """Whose token it is. LoginRefused says what is wrong with it."""
        header, claims, signed, signature = _read_token(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm.lower() == "none":
            raise LoginRefused("an unsigned token")
        if "crit" in header:
            raise LoginRefused("a token with an unknown extension")
        verify = self._find_key(key_id if isinstance(key_id, str) else None)
        if verify is None:
            raise LoginRefused("a token signed with a key that is not the issuer's")
        if not verify(algorithm, signed, signature):
            raise LoginRefused("a token with a wrong signature")
        user = _text_claim(claims, self._sub_claim)
        expires_s = check_times(claims, self._now_ms() // _SECOND_MS, self._skew_s)
        if self._issuer is not None and claims.get("iss") != self._issuer:
            raise LoginRefused("a token of another issuer", user=user)
        if self._audiences and not self._audiences & set(_texts(claims, "aud")):
            raise LoginRefused("a token for another audience", user=user)
        _texts(claims, self._scope_claim)
        return Login(user, expires_s * _SECOND_MS)


class UnsecuredValidator:
    """Takes tokens that nobody has signed. Everybody can be anybody."""

    def __init__(self, options: Mapping[str, str], *, now_ms: Callable[[], int]) -> None:
        """`options` are those of the JAAS line."""
        self._now_ms = now_ms
        self._sub_claim = options.get("unsecuredValidatorPrincipalClaimName", "sub")
        self._scope_claim = options.get("unsecuredValidatorScopeClaimName", "scope")
        self._required = frozenset(options.get("unsecuredValidatorRequiredScope", "").split())
        skew = options.get("unsecuredValidatorAllowableClockSkewMs", "0")
        if not (skew.isascii() and skew.isdecimal()):
            raise SecuritySettingError("unsecuredValidatorAllowableClockSkewMs in sasl.jaas.config is not a number")
        self._skew_s = int(skew) // _SECOND_MS

    def __call__(self, token: str) -> Login:
        header, claims, _, signature = _read_token(token)
        if header.get("alg") != "none" or signature:
            raise LoginRefused("a signed token, where only unsigned ones are accepted")
        user = _text_claim(claims, self._sub_claim)
        expires_s = check_times(claims, self._now_ms() // _SECOND_MS, self._skew_s, is_issue_time_needed=False)
        missing = self._required - set(_texts(claims, self._scope_claim))
        if missing:
            raise LoginRefused(f"a token without the scope {min(missing)}", user=user)
        return Login(user, expires_s * _SECOND_MS)


# --- claims


def check_times(claims: Mapping[str, Any], now_s: int, skew_s: int, *, is_issue_time_needed: bool = True) -> int:
    """When a token expires, in seconds; LoginRefused if it has, or is not good yet."""
    expires_s = _time_claim(claims, "exp")
    issued_s = _time_claim(claims, "iat") if is_issue_time_needed or "iat" in claims else now_s
    valid_from_s = _time_claim(claims, "nbf") if "nbf" in claims else now_s
    if expires_s + skew_s <= now_s:
        raise LoginRefused("an expired token")
    if max(issued_s, valid_from_s) - skew_s > now_s:
        raise LoginRefused("a token that is not valid yet")
    return expires_s


def _time_claim(claims: Mapping[str, Any], name: str) -> int:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _TIME_MAX_S:
        raise LoginRefused(f"a token without a usable claim {name}")
    return int(value)


def _text_claim(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value.strip():
        raise LoginRefused(f"a token without a usable claim {name}")
    return value.strip()


def _texts(claims: Mapping[str, Any], name: str) -> list[str]:
    """The texts of a claim that is one text, several in one, or a list."""
    value = claims.get(name, [])
    found = value.split() if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(each, str) and each.strip() for each in found):
        raise LoginRefused(f"a token without a usable claim {name}")
    return found


def _read_token(token: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    """Header, claims, what is signed, and the signature."""
    try:
        head, body, signature = token.split(".")
        header, claims = json.loads(_decoded(head)), json.loads(_decoded(body))
        signature_bytes = _decoded(signature)
        signed = f"{head}.{body}".encode("ascii")
    except (ValueError, RecursionError):
        raise LoginRefused("a token that cannot be read") from None
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise LoginRefused("a token that cannot be read")
    return header, claims, signed, signature_bytes


def _decoded(text: str) -> bytes:
    """base64url without padding. ValueError if it is none."""
    if _BASE64URL.fullmatch(text) is None:
        raise ValueError("no base64url")
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


# --- keys


def read_keys(text: str | bytes) -> dict[str | None, Verify]:
    """The keys of a JSON Web Key Set by key id, under None the only one. SecuritySettingError if there is no usable
    one."""
    try:
        entries = json.loads(text)["keys"]
        found = {each.get("kid"): _key(each) for each in entries if each.get("use", "sig") == "sig"}
    except (ValueError, TypeError, KeyError, AttributeError, binascii.Error):
        raise SecuritySettingError("the JSON Web Key Set cannot be read") from None
    keys = {key_id: verify for key_id, verify in found.items() if verify is not None}
    if not keys:
        raise SecuritySettingError("the JSON Web Key Set has no RSA or EC key")
    if len(keys) == 1:
        keys[None] = next(iter(keys.values()))
    return keys


def _key(entry: Mapping[str, Any]) -> Verify | None:
    kind, algorithm = entry.get("kty"), entry.get("alg")
    make = {"RSA": _rsa_key, "EC": _ec_key}.get(str(kind))
    verify = None if make is None else make(entry)
    if verify is None or algorithm is None:
        return verify
    return lambda used, signed, signature: used == algorithm and verify(used, signed, signature)


def _number(entry: Mapping[str, Any], name: str) -> int:
    return int.from_bytes(_decoded(entry[name]), "big")


def _rsa_key(entry: Mapping[str, Any]) -> Verify | None:
    _load_cryptography()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    key = rsa.RSAPublicNumbers(_number(entry, "e"), _number(entry, "n")).public_key()
    if key.key_size < _RSA_BITS_MIN:
        return None

    def verify(algorithm: str, signed: bytes, signature: bytes) -> bool:
        name = _HASHES.get(algorithm[2:])
        if name is None or algorithm[:2] not in ("RS", "PS"):
            return False
        hashed = getattr(hashes, name)()
        pad = padding.PKCS1v15() if algorithm[:2] == "RS" else padding.PSS(padding.MGF1(hashed), hashed.digest_size)
        try:
            key.verify(signature, signed, pad, hashed)
        except InvalidSignature:
            return False
        return True

    return verify


def _ec_key(entry: Mapping[str, Any]) -> Verify | None:
    _load_cryptography()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    if entry.get("crv") not in _CURVES:
        return None
    curve_name, expected = _CURVES[entry["crv"]]
    curve = getattr(ec, curve_name)()
    key = ec.EllipticCurvePublicNumbers(_number(entry, "x"), _number(entry, "y"), curve).public_key()
    size = (curve.key_size + 7) // 8

    def verify(algorithm: str, signed: bytes, signature: bytes) -> bool:
        if algorithm != expected or len(signature) != 2 * size:
            return False
        left, right = (int.from_bytes(part, "big") for part in (signature[:size], signature[size:]))
        try:
            key.verify(encode_dss_signature(left, right), signed, ec.ECDSA(getattr(hashes, _HASHES[algorithm[2:]])()))
        except InvalidSignature:
            return False
        return True

    return verify


def _load_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise SecuritySettingError(
            "OAUTHBEARER with signed tokens needs the package cryptography: pip install ottla[security]"
        ) from None
