"""The benchmark of imports: what it starts must work, and bytecode must be where it says."""

from benchmarks.runner import Measurement
from benchmarks.wire import bench_import
from ottla import wire


def test_the_heartbeat_is_one():
    message = wire.decode("ConsumerGroupHeartbeatRequest", 1, bytes.fromhex(bench_import.HEARTBEAT))
    assert (message.group_id, message.member_id, message.member_epoch) == ("g", "m", 41)


def test_what_is_beyond_python_itself_is_told():
    measured = [Measurement("import", "python -c pass", 1, (0.01, 0.02)), Measurement("import", "x", 1, (0.05, 0.08))]
    lines = bench_import.table(measured)
    assert lines[1].split()[-4:] == ["0.0", "ms", "0.0", "ms"]
    assert lines[2].split()[-4:] == ["40.0", "ms", "50.0", "ms"]
