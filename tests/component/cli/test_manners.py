"""How commands behave in a terminal, in a pipe, and when they are interrupted."""

from __future__ import annotations

import functools
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ottla.cli import run
from tests.component.broker.raw_client import RunningNode
from tests.component.cli.live import Live, live_node

ESCAPE = b"\x1b"
WORDS = (
    ("topics", "list"),
    ("topics", "describe"),
    ("configs", "list", "broker", "1", "--all"),
    ("explain", "config", "retention.ms"),
    ("explain", "ShareFetch"),
)
HELP_CPU_S_MAX = 0.15
TRIES = 5


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    yield from live_node(tmp_path_factory.mktemp("node"))


@pytest.fixture
def ottla(running: RunningNode, capsys: pytest.CaptureFixture[str]) -> Live:
    live = Live(running, capsys)
    live("topics", "create", "orders", "--if-not-exists")
    return live


def on_terminal(words: tuple[str, ...], environment: dict[str, str]) -> bytes:
    """What a command writes to a terminal of 40 columns."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    command = [sys.executable, "-m", "ottla", *words]
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | environment
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        written = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    assert process.returncode == 0, written
    return written


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # nobody writes any more
        return b""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_no_escape_reaches_a_terminal_that_wants_none(ottla: Live, words: tuple[str, ...], environment: dict[str, str]):
    written = on_terminal(words, {"TERM": "xterm", **environment, "OTTLA_BOOTSTRAP": ottla.bootstrap})
    assert written
    assert ESCAPE not in written


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_a_terminal_gets_bold_type(ottla: Live):
    assert ESCAPE in on_terminal(("topics", "describe"), {"TERM": "xterm", "OTTLA_BOOTSTRAP": ottla.bootstrap})


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_a_pipe_gets_plain_text_and_with_color_bold_type(
    ottla: Live, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OTTLA_BOOTSTRAP", ottla.bootstrap)
    ottla.capture.readouterr()
    assert run(words) == 0
    assert ESCAPE.decode() not in ottla.capture.readouterr().out
    assert run(["--color", *words]) == 0
    assert ESCAPE.decode() in ottla.capture.readouterr().out


@pytest.mark.parametrize(
    "words", [("topics", "consume", "orders", "--follow"), ("topics", "list", "--watch", "10ms", "--json")]
)
def test_an_interrupt_ends_what_goes_on_for_ever(ottla: Live, words: tuple[str, ...]):
    ottla("topics", "produce", "orders", "one")
    place = ("--from", "beginning") if "--follow" in words else ()
    command = [sys.executable, "-m", "ottla", *words, *place, "--bootstrap", ottla.bootstrap]
    # Whoever runs the tests in the background lets them ignore interrupts; the command must not inherit that.
    heeding = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heeding) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, err) == (130, b"")


def test_help_loads_nothing_heavy():
    program = (
        "import sys; from ottla.cli import run; code = run(['--help']); "
        "heavy = {'pyspark', 'starlette', 'numpy', 'rich', 'asyncio', 'msgspec', 'numba'} & set(sys.modules); "
        "sys.exit(f'{code} {heavy}' if code or heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_is_there_at_once():
    """Time of the processor, since others may be at work on this machine; the best of a few tries."""
    best = min(_cpu_s([sys.executable, "-m", "ottla", "--help"]) for _ in range(TRIES))
    assert best < HELP_CPU_S_MAX


def _cpu_s(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
