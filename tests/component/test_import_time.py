"""What an import brings along. Seconds are for benchmarks; here we look at the list of loaded modules."""

import json
import subprocess
import sys

import pytest

HEAVY = {"asyncio", "click", "cramjam", "crc32c", "dpkt", "msgspec", "numba", "numpy", "pyarrow", "rich"}


def loaded_by(statement: str) -> set[str]:
    """Names of the top-level packages and of ottla's modules that a fresh interpreter holds after `statement`."""
    program = f"import json, sys\n{statement}\njson.dump(sorted(sys.modules), sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr))


def test_the_list_of_modules_can_tell():
    assert "asyncio" in loaded_by("import asyncio")
    assert not HEAVY & loaded_by("pass"), "a start-up hook of this interpreter loads what the tests look for"


def test_the_package_brings_nothing():
    loaded = loaded_by("import ottla")
    assert not HEAVY & loaded
    assert {name for name in loaded if name.startswith("ottla.")} == set()


def test_the_codec_brings_nothing_heavy():
    loaded = loaded_by("import ottla.wire")
    assert "ottla.wire" in loaded
    assert not HEAVY & loaded
    assert not {name for name in loaded if name.startswith("ottla.wire.types.")}


def test_a_task_of_spark_brings_only_what_it_reads_with():
    loaded = loaded_by("import ottla.spark.topic.task_reader")
    assert "ottla.client.blocking" in loaded
    others = {"ottla.client.fetcher", "ottla.client.producer", "ottla.client.share", "ottla.client.row_batches"}
    assert not ({"cramjam", "crc32c", "numba", "numpy", "pyarrow"} | others) & loaded


SMALL_TASK = """
from ottla.client.blocking import Chunk
from ottla.spark.rows import RowMaker
from ottla.spark.topic.chunk_decoder import ChunkDecoder
from ottla.wire.batch import Record, build_batch
chunk = Chunk(memoryview(build_batch([Record(0, 0, b"key", b"value")])), 0, 1, ())
((columns, _),) = ChunkDecoder().columns_of(chunk)
assert list(RowMaker("orders", 0).batches(columns, 0, 1))
"""


def test_a_small_task_of_spark_needs_neither_pandas_nor_compiled_loops():
    loaded = loaded_by(SMALL_TASK)
    assert "pyarrow" in loaded
    assert not {"numba", "pandas"} & loaded


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"]])
def test_help_loads_no_command(arguments: list[str]):
    loaded = loaded_by(f"import ottla.cli\nassert ottla.cli.run({arguments!r}) == 0")
    assert "click" in loaded
    assert not (HEAVY - {"click"}) & loaded
    mine = {name for name in loaded if name.startswith("ottla.")}
    names = ("colour", "failure", "lazy", "printable", "table", "verbosity")
    assert mine == {"ottla.cli", *(f"ottla.cli.{name}" for name in names)}
