"""What cannot be done: one line that names it, one with advice, and an exit code."""

import os
import subprocess
import sys


def test_a_reader_that_stops_early_gets_no_complaint():
    program = "import sys; from ottla.cli import main; sys.argv[1:] = ['version']; main()"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate()
    assert err == b""


def test_a_terminal_without_the_characters_is_no_reason_to_fail() -> None:
    heartbeat = "0b6f72646572732d617070"  # half a message: its dump is cut with an ellipsis
    command = [sys.executable, "-m", "ottla", "decode", "StreamsGroupHeartbeatRequest", "0", heartbeat]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "Traceback" not in done.stderr
    assert "GroupId" in done.stdout
