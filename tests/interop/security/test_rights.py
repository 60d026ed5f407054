"""Rights on every API: Apache Kafka answers as tests/golden/rights.txt has it, which our own nodes are held to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.component.broker.rights import ASKERS, CASES, GOLDEN, Asking, Case, read_answers
from tests.interop.security.rights_table import asking_apache


@pytest.fixture(scope="module")
def asking(apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    with asking_apache(tmp_path_factory.mktemp("apache")) as asking:
        yield asking


@pytest.fixture(scope="module")
def golden() -> dict[tuple[str, str], str]:
    return read_answers(GOLDEN)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_everybody_is_told_what_is_written_down(asking: Asking, golden: dict[tuple[str, str], str], case: Case):
    said = {asker: asking.answer(case, asker) for asker in ASKERS}
    assert said == {asker: golden[case.name, asker] for asker in ASKERS}
