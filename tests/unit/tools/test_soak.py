"""What a soak says grows, and what does not."""

from pathlib import Path

import pytest

from tools.soak.growth import MEASURES, Measure, growth, judge
from tools.soak.run import retention_settings, warm_up_s
from tools.soak.sampling import Sample, disk_bytes

HUNDREDTHS = Measure("files", share=0.05, slack=0)
THREE = Measure("threads", share=0, slack=3)
MIB = 1 << 20
MEMORY, OPEN_FILES, THREADS, DISK = range(4)
AT_REST = Sample(80 * MIB, 100, 6, 30 * MIB)


def quarters(*values: float) -> list[float]:
    """Ten samples of each."""
    return [value for value in values for _ in range(10)]


@pytest.mark.parametrize(
    ("measure", "values", "is_growing"),
    [
        pytest.param(HUNDREDTHS, quarters(100, 100, 100, 100), False, id="at rest"),
        pytest.param(HUNDREDTHS, quarters(10, 100, 100, 105), False, id="within its share"),
        pytest.param(HUNDREDTHS, quarters(10, 100, 100, 106), True, id="more than its share"),
        pytest.param(THREE, quarters(8, 8, 8, 11), False, id="within its slack"),
        pytest.param(THREE, quarters(8, 8, 8, 12), True, id="more than its slack"),
        pytest.param(HUNDREDTHS, quarters(1, 100, 100, 100), False, id="warming up"),
        pytest.param(HUNDREDTHS, quarters(100, 100, 100, 50), False, id="shrinking"),
        pytest.param(HUNDREDTHS, [100, 140, 180, 120] * 10, False, id="up and down"),
        pytest.param(HUNDREDTHS, [*quarters(100, 100, 100, 100)[:-1], 900], False, id="one peak"),
        pytest.param(HUNDREDTHS, list(range(1000, 1200)), True, id="a slow leak"),
    ],
)
def test_the_last_quarter_is_compared_with_the_second(measure: Measure, values: list[float], is_growing: bool):
    found = growth(measure, values)
    assert found is not None
    assert found.is_growing is is_growing


def test_a_larger_share_or_slack_counts():
    both = Measure("memory", share=0.05, slack=8)
    assert [growth(both, quarters(0, 100, 100, after)) for after in (108, 109)] == [(100, 108, False), (100, 109, True)]
    assert [growth(both, quarters(0, 400, 400, after)) for after in (420, 421)] == [(400, 420, False), (400, 421, True)]


def samples(last: Sample) -> list[Sample]:
    return [AT_REST] * 30 + [last] * 10


@pytest.mark.parametrize(
    ("index", "value", "said"),
    [
        (MEMORY, 99 * MIB, "memory: GROWS (node 1 80.0 MiB → 80.0 MiB; node 2 80.0 MiB → 99.0 MiB GROWS)"),
        (OPEN_FILES, 120, "open files: GROWS (node 1 100 open files → 100 open files; "),
        (THREADS, 9, "threads: GROWS (node 1 6 threads → 6 threads; node 2 6 threads → 9 threads GROWS)"),
        (DISK, 33 * MIB, "disk: GROWS (node 1 30.0 MiB on disk → 30.0 MiB on disk; "),
    ],
)
def test_each_measure_can_grow_on_one_node(index: int, value: int, said: str):
    last = list(AT_REST)
    last[index] = value
    verdicts = judge({1: samples(AT_REST), 2: samples(Sample(*last))})
    assert [verdict.is_flat for verdict in verdicts] == [each != index for each in range(len(MEASURES))]
    assert str(verdicts[index]).startswith(said)


def test_a_run_that_has_ended_early_is_not_called_flat():
    verdicts = judge({1: [AT_REST] * 7})
    assert [verdict.is_flat for verdict in verdicts] == [False] * len(MEASURES)
    assert "memory: not known" in str(verdicts[0])


@pytest.mark.parametrize(("minutes", "retention_s"), [(3, 60), (60, 150), (600, 300)])
def test_records_are_deleted_often_enough_for_disks_to_come_to_rest(minutes: int, retention_s: int):
    settings = retention_settings(minutes * 60)
    assert settings["log.retention.ms"] == f"{retention_s}000"
    assert warm_up_s(settings) == 1.5 * retention_s


def test_the_disk_of_all_files_below_a_directory_is_counted(tmp_path: Path):
    empty = disk_bytes(tmp_path)
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / "0.log").write_bytes(b"x" * MIB)
    with (tmp_path / "0.index").open("wb") as sparse:
        sparse.truncate(10 * MIB)
    assert MIB <= disk_bytes(tmp_path) - empty < 2 * MIB
