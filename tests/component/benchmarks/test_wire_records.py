"""The benchmark of records: every way of reading finds the same records, and the results are written."""

import json
from pathlib import Path

import pytest

from benchmarks.wire import bench_records

# kafka-python reads its schemas in a way that Python 3.11 warns of.
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")


def test_results_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "records.json"
    options = ["--records", "100", "--rounds", "1", "--window", "0.0001", "--only", "objects"]
    assert bench_records.main([*options, "--no-java", "--json", str(file)]) == 0
    assert "without Java" in capsys.readouterr().out
    results = json.loads(file.read_text())["results"]
    assert [(result["case"], result["subject"]) for result in results] == [
        ("objects, 100 B", "ottla"),
        ("objects, 100 B", "kafka python"),
    ]
