"""The texts that the parser is tested with are what Kafka Streams writes, letter by letter."""

from pathlib import Path

from tests.interop.topologies.describing import GOLDEN, write_descriptions


def test_the_library_still_says_the_same(apache_jars: Path, tmp_path: Path) -> None:
    found, classes = tmp_path / "found", tmp_path / "classes"
    found.mkdir()
    write_descriptions(found, classes)
    texts = {path.name: path.read_text(encoding="utf-8") for path in found.iterdir()}
    assert texts == {path.name: path.read_text(encoding="utf-8") for path in GOLDEN.glob("*.txt")}
