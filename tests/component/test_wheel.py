"""The wheel holds every file of the package: schema texts and the typing marker are easily forgotten."""

import zipfile
from pathlib import Path

from tests.wheel import ROOT, built_wheel


def test_every_file_of_the_package_is_in_the_wheel(tmp_path: Path):
    source = ROOT / "src"
    written = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    wanted = {name for name in written if "__pycache__" not in name and not name.endswith((".nbi", ".nbc"))}
    assert "ottla/py.typed" in wanted
    assert any(name.startswith("ottla/wire/schemas/") and name.endswith(".txt") for name in wanted)
    assert wanted <= set(zipfile.ZipFile(built_wheel(tmp_path)).namelist())
