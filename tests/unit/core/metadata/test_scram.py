import hashlib
import hmac
from base64 import b64decode

import pytest

from ottla.core.metadata import features
from ottla.core.metadata.scram import credential_record, described_users, salted_password
from ottla.wire.errors import ErrorCode
from ottla.wire.types.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from tests.unit.core.metadata.cluster import Cluster

SHA_256, SHA_512 = 1, 2
SALT = b"0123456789abcdef"
Change = tuple[str, int, int, bytes, bytes]


def upsertion(name: str = "ann", mechanism: int = SHA_256, iterations: int = 4096, salted: bytes = b"p" * 32) -> Change:
    return name, mechanism, iterations, SALT, salted


def alter(cluster: Cluster, *upsertions: Change, deletions: tuple[tuple[str, int], ...] = ()) -> dict[str, int]:
    kind = AlterUserScramCredentialsRequest
    request = kind(
        tuple(kind.ScramCredentialDeletion(*each) for each in deletions),
        tuple(kind.ScramCredentialUpsertion(*each) for each in upsertions),
    )
    reply = cluster.submit(request)
    assert len({each.user for each in reply.results}) == len(reply.results)
    return {each.user: each.error_code for each in reply.results}


def test_credentials_come_and_go(cluster: Cluster):
    assert alter(cluster, upsertion(), upsertion("bob", SHA_512, 16384)) == {"ann": 0, "bob": 0}
    assert alter(cluster, upsertion(mechanism=SHA_512, iterations=5000)) == {"ann": 0}
    assert set(cluster.image.scram) == {(SHA_256, "ann"), (SHA_512, "ann"), (SHA_512, "bob")}
    cluster.check_law()
    assert alter(cluster, deletions=(("ann", SHA_256), ("bob", SHA_512))) == {"ann": 0, "bob": 0}
    assert set(cluster.image.scram) == {(SHA_512, "ann")}
    cluster.check_law()


def test_keys_are_those_of_rfc_7677():
    """The example of the standard: user `user`, password `pencil`."""
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = salted_password(SHA_256, "pencil", salt, 4096)
    record = credential_record("user", SHA_256, 4096, salt, salted).message
    spoken = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    proof = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(record.stored_key, spoken, "sha256")
    client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == record.stored_key
    told = b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    assert hmac.digest(record.server_key, spoken, "sha256") == told


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (upsertion(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(name=""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(salted=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_refused(cluster: Cluster, change: Change, code: ErrorCode):
    assert alter(cluster, change) == {change[0]: code}
    assert cluster.image.scram == {}


def test_what_is_not_there_cannot_be_deleted(cluster: Cluster):
    alter(cluster, upsertion())
    assert alter(cluster, deletions=(("ann", SHA_512),)) == {"ann": ErrorCode.RESOURCE_NOT_FOUND}
    assert alter(cluster, deletions=(("bob", SHA_256),)) == {"bob": ErrorCode.RESOURCE_NOT_FOUND}


def test_one_change_for_a_user(cluster: Cluster):
    alter(cluster, upsertion())
    twice = ErrorCode.DUPLICATE_RESOURCE
    assert alter(cluster, upsertion(mechanism=SHA_512), upsertion()) == {"ann": twice}
    assert alter(cluster, upsertion(mechanism=SHA_512), deletions=(("ann", SHA_256),)) == {"ann": twice}
    assert set(cluster.image.scram) == {(SHA_256, "ann")}


def test_the_first_fault_of_a_user_is_told(cluster: Cluster):
    assert alter(cluster, upsertion(iterations=1), upsertion()) == {"ann": ErrorCode.UNACCEPTABLE_CREDENTIAL}
    assert alter(cluster, upsertion(), upsertion(iterations=1)) == {"ann": ErrorCode.DUPLICATE_RESOURCE}
    gone = alter(cluster, upsertion(), deletions=(("ann", SHA_256),))
    assert gone == {"ann": ErrorCode.RESOURCE_NOT_FOUND}


def test_not_before_metadata_versions_know_of_them():
    cluster = Cluster(levels={features.METADATA_VERSION: features.SCRAM_FROM - 1})
    assert alter(cluster, upsertion()) == {"ann": ErrorCode.UNSUPPORTED_VERSION}


def test_rights(cluster: Cluster):
    kind = AlterUserScramCredentialsRequest
    request = kind((kind.ScramCredentialDeletion("ann", 1),), (kind.ScramCredentialUpsertion(*upsertion("bob")),))
    reply = cluster.ask(request, authorize=lambda *_: False).reply
    codes = {each.user: ErrorCode(each.error_code) for each in reply.results}
    assert codes == dict.fromkeys(["ann", "bob"], ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def test_users_are_described_without_their_keys(cluster: Cluster):
    alter(cluster, upsertion(), upsertion("bob", SHA_512, 8192))
    alter(cluster, upsertion(mechanism=SHA_512, iterations=9000))
    found = {
        each.user: [(one.mechanism, one.iterations) for one in each.credential_infos]
        for each in described_users(cluster.image, None)
    }
    assert found == {"ann": [(SHA_256, 4096), (SHA_512, 9000)], "bob": [(SHA_512, 8192)]}
    (unknown,) = described_users(cluster.image, ["cid"])
    assert (unknown.error_code, unknown.credential_infos) == (ErrorCode.RESOURCE_NOT_FOUND, ())
    (twice,) = described_users(cluster.image, ["ann", "ann"])
    assert (twice.error_code, twice.credential_infos) == (ErrorCode.DUPLICATE_RESOURCE, ())
