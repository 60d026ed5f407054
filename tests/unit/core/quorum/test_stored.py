import pytest

from ottla.core.quorum.stored import StoredState, StoredStateError, read_stored, write_stored

V1 = b'{"leaderId":1,"leaderEpoch":3,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
V0 = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1}],"data_version":0}'
)


def test_byte_for_byte_as_apache_writes_it():
    assert write_stored(StoredState(3, leader_id=1), kraft_version=1) == V1
    assert write_stored(StoredState(1, leader_id=1), kraft_version=0, voter_ids=(1,)) == V0


def test_both_versions_are_read():
    assert read_stored(V1) == StoredState(3, leader_id=1)
    assert read_stored(V0) == StoredState(1, leader_id=1)


def test_a_vote_is_kept_with_its_directory():
    voted = StoredState(5, voted_id=2, voted_directory_id=b"2" * 16)
    assert read_stored(write_stored(voted, kraft_version=1)) == voted


def test_unknown_keys_are_overlooked():
    assert read_stored(V1.replace(b"{", b'{"later":[1],')) == StoredState(3, leader_id=1)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (V1[:-5], "not JSON"),
        (b"[]", "data_version"),
        (b"{}", "data_version"),
        (V1.replace(b'"data_version":1', b'"data_version":2'), "data_version"),
        (V1.replace(b'"leaderEpoch":3', b'"leaderEpoch":"x"'), "leaderEpoch|leader_epoch|LeaderEpoch"),
        (V1.replace(b'"leaderEpoch":3,', b""), "cannot be read"),
        (b"\xff\xfe", "not JSON"),
    ],
)
def test_what_cannot_be_read_is_not_taken_for_nothing(content: bytes, reason: str):
    with pytest.raises(StoredStateError, match=reason):
        read_stored(content)
