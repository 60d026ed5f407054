"""The timing of benchmarks, with a clock and a machine of our own making."""

import pytest

from benchmarks import runner
from benchmarks.runner import Case, Measurement, Settings, Size, Subject


class Machine:
    """Work that takes as long as it is told, on a clock that only work moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log: list[tuple[str, object]] = []

    def clock(self) -> float:
        return self.now

    def subject(self, name: str, seconds: float, arguments: list[tuple[object, ...]]) -> Subject:
        def call(argument: object) -> None:
            self.now += seconds
            self.log.append((name, argument))

        return Subject(name, call, arguments)


def test_a_window_gives_the_seconds_of_one_call():
    machine = Machine()
    subject = machine.subject("a", 0.5, [(1,), (2,)])
    assert runner.run_window(subject, 4, machine.clock) == 0.5


def test_arguments_take_turns():
    machine = Machine()
    runner.run_window(machine.subject("a", 1, [(1,), (2,), (3,)]), 7, machine.clock)
    assert [argument for _, argument in machine.log] == [1, 2, 3, 1, 2, 3, 1]


@pytest.mark.parametrize(("seconds", "calls"), [(0.001, 100), (0.05, 2), (10.0, 2)])
def test_calls_fill_the_window_and_use_every_argument(seconds: float, calls: int):
    machine = Machine()
    assert runner.calls_for(machine.subject("a", seconds, [(1,), (2,)]), 0.1, machine.clock) == calls


def test_subjects_alternate_and_the_order_turns():
    machine = Machine()
    case = Case("task", [machine.subject(name, 1.0, [(0,)]) for name in "abc"])
    runner.measure(case, Settings(rounds=3, window_s=0.1), machine.clock)
    warm_up, rounds = machine.log[:3], machine.log[3:]
    assert "".join(name for name, _ in warm_up) == "abc"
    assert "".join(name for name, _ in rounds) == "abcbcacab"


def test_measurements_come_in_the_order_of_the_subjects():
    machine = Machine()
    case = Case("task", [machine.subject("slow", 3.0, [(0,)]), machine.subject("fast", 1.0, [(0,)])])
    measured = runner.measure(case, Settings(rounds=4, window_s=0.1), machine.clock)
    assert [(one.subject, one.best, len(one.seconds)) for one in measured] == [("slow", 3.0, 4), ("fast", 1.0, 4)]


def test_statistics():
    one = Measurement("task", "a", 1, (5.0, 1.0, 2.0, 4.0, 3.0))
    assert (one.best, one.median, one.spread) == (1.0, 3.0, pytest.approx(2 / 3))


def test_ratio_is_taken_within_rounds():
    # The machine is ten times slower in the second round: neither medians nor bests would say 2.
    ours = Measurement("task", "ottla", 1, (1.0, 10.0, 1.5))
    rival = Measurement("task", "kio", 1, (2.0, 20.0, 9.0))
    assert runner.paired_ratio(ours, rival) == 2.0


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.0, "2 s"), (0.0123, "12.3 ms"), (4.56e-6, "4.56 µs"), (7.8e-8, "78 ns")]
)
def test_durations_read_well(seconds: float, text: str):
    assert runner.duration(seconds) == text


def test_the_size_decides_what_the_command_line_does_not_say():
    records = {Size.FULL: 1000, Size.QUICK: 100, Size.SMOKE: 10}
    options = runner.read_windows(runner.parser(None), ["--smoke", "--rounds", "7"], records=records)
    assert (options.rounds, options.window, options.records) == (7, 0.0, 10)


def test_a_smoke_run_has_no_use_for_a_file(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        runner.read_options(runner.parser(None), ["--smoke", "--out", "x.json"])
    assert "--smoke writes nothing" in capsys.readouterr().err
