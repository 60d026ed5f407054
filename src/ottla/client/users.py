"""Users that log in with SCRAM: who they are, and how their passwords are set.

The password never leaves this process: what is sent is salted and hashed, and what the cluster keeps cannot be logged
in with.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.client.client import Client, always
from ottla.client.errors import check
from ottla.security.errors import SecuritySettingError
from ottla.security.scram_messages import HASHES
from ottla.wire.access import SCRAM_MECHANISMS
from ottla.wire.errors import ErrorCode
from ottla.wire.types.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from ottla.wire.types.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

__all__ = ["ITERATIONS_DEFAULT", "MECHANISMS", "ScramUser", "delete_users", "describe_users", "set_users"]

MECHANISMS: Final = SCRAM_MECHANISMS
ITERATIONS_DEFAULT: Final = 8192
_SALT_BYTES: Final = 24


class ScramUser(NamedTuple):
    name: str
    password: str
    mechanism: str = "SCRAM-SHA-512"
    iterations: int = ITERATIONS_DEFAULT


async def describe_users(client: Client, names: Iterable[str] | None = None) -> dict[str, dict[str, int]]:
    """The mechanisms of users and their iterations, of all or of those that are named and known."""
    kind = DescribeUserScramCredentialsRequest
    users = None if names is None else tuple(kind.UserName(name) for name in names)
    answer = await client.ask("DescribeUserScramCredentials", always(kind(users)))
    body = answer.of(DescribeUserScramCredentialsResponse)
    check(answer.peer, "DescribeUserScramCredentials", body.error_code, message=body.error_message)
    by_number = {number: name for name, number in MECHANISMS.items()}
    found: dict[str, dict[str, int]] = {}
    for each in body.results:
        if each.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        check(answer.peer, "DescribeUserScramCredentials", each.error_code, f"user {each.user}", each.error_message)
        found[each.user] = {
            by_number.get(info.mechanism, str(info.mechanism)): info.iterations for info in each.credential_infos
        }
    return found


async def set_users(client: Client, users: Iterable[ScramUser]) -> None:
    """Give users a password; a user can be changed once in a call."""
    kind = AlterUserScramCredentialsRequest
    upsertions = []
    for user in users:
        if user.mechanism not in MECHANISMS:
            raise SecuritySettingError(f"{user.mechanism!r} is not one of {', '.join(MECHANISMS)}")
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = hashlib.pbkdf2_hmac(HASHES[user.mechanism], user.password.encode(), salt, user.iterations)
        upsertions.append(
            kind.ScramCredentialUpsertion(user.name, MECHANISMS[user.mechanism], user.iterations, salt, salted)
        )
    await _alter(client, kind(upsertions=tuple(upsertions)))


async def delete_users(client: Client, users: Iterable[tuple[str, str]]) -> None:
    """Take credentials away, each given by user and mechanism."""
    kind = AlterUserScramCredentialsRequest
    deletions = tuple(kind.ScramCredentialDeletion(name, MECHANISMS[mechanism]) for name, mechanism in users)
    await _alter(client, kind(deletions=deletions))


async def _alter(client: Client, request: AlterUserScramCredentialsRequest) -> None:
    answer = await client.ask("AlterUserScramCredentials", always(request), broker="controller")
    for each in answer.of(AlterUserScramCredentialsResponse).results:
        check(answer.peer, "AlterUserScramCredentials", each.error_code, f"user {each.user}", each.error_message)
