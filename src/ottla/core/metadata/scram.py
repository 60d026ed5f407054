"""SCRAM credentials: AlterUserScramCredentials, what DescribeUserScramCredentials finds, and how they are derived.

A client sends the salted password (PBKDF2, RFC 5802), never the password. What is kept cannot be logged in with: the
stored key checks what a client proves, the server key proves that the server knows it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from ottla.core.metadata import features
from ottla.core.metadata.checks import check_cluster_access, check_size
from ottla.core.metadata.context import Context, ControllerState, Result
from ottla.core.metadata.image import MetadataImage
from ottla.wire.access import SCRAM_MECHANISMS, Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.reject import Reject, shortened
from ottla.wire.types.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsRequestScramCredentialDeletion,
    AlterUserScramCredentialsRequestScramCredentialUpsertion,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResponseAlterUserScramCredentialsResult,
)
from ottla.wire.types.cluster_metadata import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from ottla.wire.types.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponseCredentialInfo,
    DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult,
)

MECHANISMS: Final[Mapping[str, int]] = SCRAM_MECHANISMS
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
_HASHES: Final = {1: "sha256", 2: "sha512"}

_Deletion = AlterUserScramCredentialsRequestScramCredentialDeletion
_Upsertion = AlterUserScramCredentialsRequestScramCredentialUpsertion
_Change = _Deletion | _Upsertion
_Altered = AlterUserScramCredentialsResponseAlterUserScramCredentialsResult
_Described = DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult


def salted_password(mechanism: int, password: str, salt: bytes, iterations: int) -> bytes:
    """What a client makes of a password, before anybody sees it."""
    return hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)


def credential_record(name: str, mechanism: int, iterations: int, salt: bytes, salted: bytes) -> Versioned:
    """The record that keeps a credential."""
    algorithm = _HASHES[mechanism]
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    stored_key = hashlib.new(algorithm, client_key).digest()
    server_key = hmac.digest(salted, b"Server Key", algorithm)
    return Versioned(UserScramCredentialRecord(name, mechanism, salt, stored_key, server_key, iterations), 0)


# --- changing


def alter_user_scram_credentials(
    state: ControllerState, request: AlterUserScramCredentialsRequest, context: Context
) -> Result:
    """AlterUserScramCredentials: each user is changed or refused on his own; one change for a user at most."""
    check_cluster_access(context, Operation.ALTER)
    counts = Counter(change.name for change in _changes(request))
    firsts: dict[str, _Change] = {change.name: change for change in reversed(_changes(request))}
    records: list[Versioned] = []
    results = []
    for name, change in firsts.items():
        try:
            record = _record(state, change, counts[name])
            check_size(len(records) + 1)
        except Reject as reject:
            results.append(_Altered(name, reject.code, reject.message))
        else:
            records.append(record)
            results.append(_Altered(name, error_message=None))
    return Result(tuple(records), AlterUserScramCredentialsResponse(results=tuple(results)))


def refuse_alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, reject: Reject
) -> AlterUserScramCredentialsResponse:
    names = dict.fromkeys(change.name for change in _changes(request))
    return AlterUserScramCredentialsResponse(
        results=tuple(_Altered(name, reject.code, reject.message) for name in names)
    )


def _changes(request: AlterUserScramCredentialsRequest) -> list[_Change]:
    return [*request.deletions, *request.upsertions]


def _record(state: ControllerState, change: _Change, count: int) -> Versioned:
    if state.image.metadata_version < features.SCRAM_FROM:
        raise Reject(ErrorCode.UNSUPPORTED_VERSION, "The cluster's metadata.version has no SCRAM credentials.")
    if not change.name:
        raise Reject(ErrorCode.UNACCEPTABLE_CREDENTIAL, "A user must have a name.")
    if change.mechanism not in _HASHES:
        raise Reject(ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"There is no SCRAM mechanism {change.mechanism}.")
    record = _upserted(change) if isinstance(change, _Upsertion) else _deleted(state.image, change)
    if count > 1:
        raise Reject(ErrorCode.DUPLICATE_RESOURCE, "The request changes the user more than once.")
    return record


def _upserted(change: _Upsertion) -> Versioned:
    if not change.salted_password:
        raise Reject(ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salted password is empty.")
    if not ITERATIONS_MIN <= change.iterations <= ITERATIONS_MAX:
        raise Reject(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"{change.iterations} iterations are not between {ITERATIONS_MIN} and {ITERATIONS_MAX}.",
        )
    return credential_record(change.name, change.mechanism, change.iterations, change.salt, change.salted_password)


def _deleted(image: MetadataImage, change: _Deletion) -> Versioned:
    if (change.mechanism, change.name) not in image.scram:
        raise Reject(ErrorCode.RESOURCE_NOT_FOUND, "The user has no credential of this mechanism.")
    return Versioned(RemoveUserScramCredentialRecord(change.name, change.mechanism), 0)


# --- finding


def described_users(image: MetadataImage, names: Iterable[str] | None) -> list[_Described]:
    """What there is of these users, or of all."""
    asked = Counter(names or (name for _, name in image.scram))
    return [_described(image, name, 1 if names is None else count) for name, count in asked.items()]


def _described(image: MetadataImage, name: str, count: int) -> _Described:
    if count > 1:
        message = shortened(f"The request names user '{name}' more than once.")
        return _Described(name, ErrorCode.DUPLICATE_RESOURCE, message)
    infos = tuple(
        DescribeUserScramCredentialsResponseCredentialInfo(mechanism, image.scram[mechanism, name].iterations)
        for mechanism in _HASHES
        if (mechanism, name) in image.scram
    )
    if not infos:
        return _Described(name, ErrorCode.RESOURCE_NOT_FOUND, shortened(f"User '{name}' has no SCRAM credentials."))
    return _Described(name, credential_infos=infos)
