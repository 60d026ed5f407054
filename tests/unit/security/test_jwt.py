"""Tokens: which are taken, and that a refusal never holds one."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from contextlib import suppress
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.security.errors import LoginRefused, SecuritySettingError
from ottla.security.jwt import JwtValidator, UnsecuredValidator, read_keys
from ottla.security.sasl_server import Login

NOW_S = 1_000_000
CLAIMS: dict[str, Any] = {"sub": "ann", "exp": NOW_S + 60, "iat": NOW_S - 5, "iss": "issuer", "aud": ["kafka", "other"]}
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


def text(data: bytes | dict[str, Any]) -> str:
    raw = json.dumps(data).encode() if isinstance(data, dict) else data
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def number(value: int) -> str:
    return text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def sign(algorithm: str, signed: bytes) -> bytes:
    if algorithm.startswith("RS"):
        return RSA.sign(signed, padding.PKCS1v15(), hashes.SHA256())
    if algorithm.startswith("PS"):
        return RSA.sign(signed, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
    left, right = decode_dss_signature(EC.sign(signed, ec.ECDSA(hashes.SHA256())))
    return left.to_bytes(32, "big") + right.to_bytes(32, "big")


def token(claims: dict[str, Any] = CLAIMS, algorithm: str = "RS256", **header: Any) -> str:
    key_id = "ec" if algorithm.startswith("ES") else "rsa"
    signed = f"{text({'alg': algorithm, 'kid': key_id, **header})}.{text(claims)}"
    return f"{signed}.{text(sign(algorithm, signed.encode()))}"


def key_set() -> str:
    public, on_curve = RSA.public_key().public_numbers(), EC.public_key().public_numbers()
    return json.dumps(
        {
            "keys": [
                {"kty": "RSA", "kid": "rsa", "n": number(public.n), "e": number(public.e), "use": "sig"},
                {"kty": "EC", "kid": "ec", "crv": "P-256", "x": number(on_curve.x), "y": number(on_curve.y)},
                {"kty": "oct", "kid": "secret", "k": text(b"key")},
            ]
        }
    )


KEYS = read_keys(key_set())


def validator(**options: Any) -> JwtValidator:
    return JwtValidator(KEYS.get, now_ms=lambda: NOW_S * 1000, **options)


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256"])
def test_a_signed_token_is_taken(algorithm: str):
    found = validator(issuer="issuer", audiences=("kafka",))(token(algorithm=algorithm))
    assert found == Login("ann", (NOW_S + 60) * 1000)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"exp": NOW_S - 31}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": "soon"}, "exp"),
        ({"iat": None}, "iat"),
        ({"iat": NOW_S + 31}, "not valid yet"),
        ({"nbf": NOW_S + 31}, "not valid yet"),
        ({"iss": "another"}, "issuer"),
        ({"aud": "another"}, "audience"),
        ({"sub": ""}, "sub"),
        ({"sub": 5}, "sub"),
        ({"scope": [5]}, "scope"),
        ({"exp": 1e300}, "exp"),
    ],
)
def test_claims_are_checked(change: dict[str, Any], reason: str):
    claims = {name: value for name, value in {**CLAIMS, **change}.items() if value is not None}
    with pytest.raises(LoginRefused, match=reason):
        validator(issuer="issuer", audiences=("kafka",))(token(claims))


@pytest.mark.parametrize("change", [{"exp": NOW_S - 29}, {"iat": NOW_S + 29}, {"aud": "kafka"}, {"scope": "a b"}])
def test_clocks_may_differ_and_claims_have_several_forms(change: dict[str, Any]):
    validator(audiences=("kafka",))(token({**CLAIMS, **change}))


def test_other_claims_can_hold_the_name():
    assert validator(sub_claim="client_id")(token({**CLAIMS, "client_id": "app"})).user == "app"


def test_what_is_not_signed_is_refused():
    unsigned = f"{text({'alg': 'none'})}.{text(CLAIMS)}."
    with pytest.raises(LoginRefused, match="an unsigned token"):
        validator()(unsigned)
    for algorithm in ("None", "NONE"):
        with pytest.raises(LoginRefused):
            validator()(f"{text({'alg': algorithm})}.{text(CLAIMS)}.")


def test_a_signature_of_another_key_or_kind_is_refused():
    head, _, signature = token().split(".")
    with pytest.raises(LoginRefused, match="signature"):
        validator()(f"{head}.{text({**CLAIMS, 'sub': 'root'})}.{signature}")
    with pytest.raises(LoginRefused, match="key that is not"):
        validator()(token(kid="unknown"))
    with pytest.raises(LoginRefused, match="signature"):
        validator()(token(kid="ec"))
    with pytest.raises(LoginRefused, match="signature"):  # the public key is no secret to sign with
        validator()(token(alg="HS256"))


def test_an_extension_that_must_be_understood_is_refused():
    with pytest.raises(LoginRefused, match="extension"):
        validator()(token(crit=["b64"]))


def test_one_key_needs_no_id():
    only = json.dumps({"keys": json.loads(key_set())["keys"][:1]})
    find = read_keys(only).get
    signed = f"{text({'alg': 'RS256'})}.{text(CLAIMS)}"
    made = f"{signed}.{text(sign('RS256', signed.encode()))}"
    assert JwtValidator(find, now_ms=lambda: NOW_S * 1000)(made).user == "ann"
    with pytest.raises(LoginRefused):
        validator()(made)


@pytest.mark.parametrize("data", ["", "[]", "{}", '{"keys": 5}', '{"keys": []}', '{"keys": [{"kty": "oct"}]}'])
def test_a_wrong_key_set_is_told(data: str):
    with pytest.raises(SecuritySettingError, match="Key Set"):
        read_keys(data)


def test_short_keys_do_not_count():
    small = rsa.generate_private_key(65537, 1024).public_key().public_numbers()
    with pytest.raises(SecuritySettingError):
        read_keys(json.dumps({"keys": [{"kty": "RSA", "n": number(small.n), "e": number(small.e)}]}))


def test_the_unsecured_validator_takes_only_what_is_not_signed():
    unsecured = UnsecuredValidator({"unsecuredValidatorRequiredScope": "read"}, now_ms=lambda: NOW_S * 1000)
    head = text({"alg": "none"})
    assert unsecured(f"{head}.{text({'sub': 'ann', 'exp': NOW_S + 1, 'scope': 'read write'})}.").user == "ann"
    with pytest.raises(LoginRefused, match="scope read"):
        unsecured(f"{head}.{text({'sub': 'ann', 'exp': NOW_S + 1})}.")
    with pytest.raises(LoginRefused, match="signed"):
        unsecured(token())


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=80), st.tuples(*[st.binary(max_size=40).map(text)] * 3).map(".".join)))
def test_garbage_is_refused_and_not_repeated(made: str):
    for validate in (validator(), UnsecuredValidator({}, now_ms=lambda: NOW_S * 1000)):
        with pytest.raises(LoginRefused) as refused:
            validate(made)
        assert len(made) < 10 or made not in str(refused.value)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["sub", "exp", "iat", "nbf", "aud", "iss", "scope", "kid"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5), st.lists, max_leaves=3
        ),
    )
)
def test_any_claims_are_taken_or_refused(claims: dict[str, Any]):
    with suppress(LoginRefused):
        validator(issuer="issuer", audiences=("kafka",))(token(claims))
