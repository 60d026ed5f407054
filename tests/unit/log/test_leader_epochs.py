from pathlib import Path

import pytest

from ottla.log.files import Directory
from ottla.log.leader_epochs import LeaderEpochs
from tests.unit.log.logs import new_storage


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(new_storage(), str(tmp_path))


def test_epochs_and_offsets_rise_strictly(directory: Directory):
    epochs = LeaderEpochs(directory)
    epochs.assign(0, 0)
    epochs.assign(0, 10)
    assert epochs.entries == ((0, 0),)
    epochs.assign(2, 20)
    epochs.assign(3, 20)  # nothing was written in epoch 2
    assert epochs.entries == ((0, 0), (3, 20))
    epochs.assign(5, 7)  # contradicts both the order of offsets and epoch 3
    assert epochs.entries == ((0, 0), (5, 7))
    epochs.assign(1, 30)
    assert epochs.entries == ((0, 0), (1, 30))


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(-1, (-1, -1)), (0, (0, 5)), (1, (1, 10)), (2, (2, 30)), (4, (2, 30)), (6, (6, 99)), (7, (-1, -1))],
)
def test_where_an_epoch_ends(directory: Directory, epoch: int, answer: tuple[int, int]):
    # Epoch 0 is older than all that is known: it ends where the log begins.
    epochs = LeaderEpochs(directory, [(1, 5), (2, 10), (6, 30)])
    assert epochs.end_offset_for(epoch, 99) == answer


def test_nothing_is_known_of_an_empty_log(directory: Directory):
    epochs = LeaderEpochs(directory)
    assert epochs.latest_epoch == -1
    assert epochs.end_offset_for(3, 10) == (-1, -1)
    assert epochs.epoch_for(3) == -1
    assert epochs.earliest() is None


def test_the_epoch_of_an_offset(directory: Directory):
    epochs = LeaderEpochs(directory, [(1, 5), (2, 10)])
    assert [epochs.epoch_for(offset) for offset in (4, 5, 9, 10, 99)] == [-1, 1, 1, 2, 2]


def test_truncating_the_end(directory: Directory):
    epochs = LeaderEpochs(directory, [(1, 5), (2, 10), (6, 30)])
    assert not epochs.truncate_from_end(31)
    assert not epochs.is_dirty
    assert epochs.truncate_from_end(30)
    assert epochs.entries == ((1, 5), (2, 10))
    epochs.truncate_from_end(0)
    assert epochs.entries == ()


def test_truncating_the_start_raises_the_first_entry(directory: Directory):
    epochs = LeaderEpochs(directory, [(1, 5), (2, 10), (6, 30)])
    epochs.truncate_from_start(4)
    epochs.truncate_from_start(5)
    assert not epochs.is_dirty
    epochs.truncate_from_start(7)
    assert epochs.entries == ((1, 7), (2, 10), (6, 30))
    epochs.truncate_from_start(12)
    assert epochs.entries == ((2, 12), (6, 30))
    epochs.truncate_from_start(99)
    assert epochs.entries == ((6, 99),)


def test_what_recovery_meets(directory: Directory):
    epochs = LeaderEpochs(directory, [(0, 0), (2, 50)])
    for offset in (0, 40, 60):
        epochs.observe(0, offset)
    # The batch at 60 is of epoch 0, so epoch 2 cannot have begun at 50.
    assert epochs.entries == ((0, 0),)
    epochs.observe(3, 70)
    epochs.observe(3, 80)
    assert epochs.entries == ((0, 0), (3, 70))


def test_what_recovery_meets_of_older_epochs_says_nothing_new(directory: Directory):
    epochs = LeaderEpochs(directory, [(1, 10), (2, 50)])
    epochs.observe(0, 5)
    epochs.observe(1, 20)
    epochs.observe(2, 60)
    assert epochs.entries == ((1, 10), (2, 50))
    assert not epochs.is_dirty


def test_recovery_meets_an_epoch_before_its_entry(directory: Directory):
    epochs = LeaderEpochs(directory, [(0, 0), (1, 9), (4, 50)])
    epochs.observe(1, 7)
    assert epochs.entries == ((0, 0), (1, 7), (4, 50))
    epochs.observe(4, 40)
    epochs.observe(4, 60)
    assert epochs.entries == ((0, 0), (1, 7), (4, 40))
    epochs.observe(1, 0)  # what was in epoch 0 is gone
    assert epochs.entries == ((1, 0), (4, 40))
    assert epochs.is_dirty


def test_the_file_is_written_when_it_lacks_something(directory: Directory, tmp_path: Path):
    epochs = LeaderEpochs(directory)
    epochs.write()
    path = tmp_path / "leader-epoch-checkpoint"
    assert not path.exists()
    epochs.assign(4, 17)
    epochs.write()
    assert path.read_bytes() == b"0\n1\n4 17\n"
    path.unlink()
    epochs.write()
    assert not path.exists()
    epochs.clear()
    epochs.write()
    assert path.read_bytes() == b"0\n0\n"
