from ottla.core.quorum.voters import (
    BOOTSTRAP_OFFSET,
    ControlHistory,
    Listener,
    Voter,
    VoterSet,
    voters_from_record,
    voters_record,
)
from ottla.wire.types.control_records import KRaftVersionRecord, LeaderChangeMessage

ONE = Voter(1, b"1" * 16, (Listener("CONTROLLER", "a", 1), Listener("OTHER", "b", 2)), (0, 1))
TWO = Voter(2, b"2" * 16)


def test_to_a_record_and_back():
    voters = VoterSet((ONE, TWO))
    assert voters_from_record(voters_record(voters)) == voters


def test_voters_are_in_the_order_of_their_ids():
    assert voters_from_record(voters_record(VoterSet((TWO, ONE)))).ids == (1, 2)
    assert VoterSet((TWO,)).with_voter(ONE).ids == (1, 2)


def test_another_directory_is_another_voter():
    voters = VoterSet((ONE,))
    assert voters.find(1, b"1" * 16) == ONE
    assert voters.find(1, b"2" * 16) is None
    assert voters.find(2, b"1" * 16) is None


def test_a_configured_voter_is_known_by_its_id():
    assert VoterSet((Voter(1),)).find(1, b"9" * 16) == Voter(1)


def test_an_entry_is_replaced():
    moved = Voter(1, b"1" * 16, (Listener("CONTROLLER", "z", 9),))
    assert VoterSet((ONE, TWO)).with_voter(moved).voters == (moved, TWO)


def test_the_newest_record_counts_and_truncation_takes_it_back():
    history = ControlHistory()
    assert (history.kraft_version, len(history.voters), history.voters_offset) == (0, 0, BOOTSTRAP_OFFSET)
    history.replay(KRaftVersionRecord(k_raft_version=1), 1)
    history.replay(voters_record(VoterSet((ONE,))), 2)
    history.replay(LeaderChangeMessage(), 3)
    history.replay(voters_record(VoterSet((ONE, TWO))), 7)
    assert (history.kraft_version, history.voters.ids, history.voters_offset) == (1, (1, 2), 7)
    history.truncate(7)
    assert (history.voters.ids, history.voters_offset) == ((1,), 2)
    history.truncate(1)
    assert (history.kraft_version, history.voters.ids) == (0, ())


def test_what_formatting_set_outlives_truncation():
    history = ControlHistory(VoterSet((ONE,)))
    history.replay(voters_record(VoterSet((ONE, TWO))), 7)
    history.truncate(0)
    assert history.voters.ids == (1,)
