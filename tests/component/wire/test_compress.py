"""The five codecs: round trips, the framings that Kafka uses, and the bound on what comes out."""

import subprocess
import sys

import pytest

BOMB = """
import resource, struct, sys
from ottla.wire import WireError
from ottla.wire.compress import compress, decompress

codec, pieces = int(sys.argv[1]), int(sys.argv[2])
plain = bytes(64 << 20)
packed = compress(codec, plain)
if codec == 3:
    packed = packed[:7] + packed[7:-4] * pieces + bytes(4)
elif codec == 2:
    packed = packed[:16] + packed[16:] * pieces
else:
    packed *= pieces
del plain
decompress(codec, compress(codec, b"warm"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(codec, packed, max_bytes=1 << 20)
except WireError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no resource module")
@pytest.mark.parametrize(("codec", "pieces"), [(1, 8), (2, 1), (3, 4), (4, 64)])
def test_bombs_are_refused_within_the_bound(codec: int, pieces: int):
    """Up to 4 GiB behind a few megabytes: the process may not grow by more than a little over the bound."""
    command = [sys.executable, "-c", BOMB, str(codec), str(pieces)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown_kib, _, reason = done.stdout.partition(" ")
    assert "come out" in reason or "still allowed" in reason
    assert int(grown_kib) < 16 * 1024
