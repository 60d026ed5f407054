from io import StringIO
from pathlib import Path

from rich.console import Console

from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.demo.expected import Expectation
from ottla.cli.demo.ledger import Account
from ottla.cli.demo.summary import show_accounts, show_expectations, show_findings, show_next


def console() -> Console:
    return Console(file=StringIO(), width=120)


def text(of: Console) -> str:
    assert isinstance(of.file, StringIO)
    return of.file.getvalue()


def finding(sentence: str, since_ms: int, until_ms: int | None) -> dict[str, object]:
    state = "open" if until_ms is None else "resolved"
    return {"severity": "warning", "state": state, "since_ms": since_ms, "until_ms": until_ms, "sentence": sentence}


def test_findings_in_order_of_time():
    shown = console()
    show_findings(shown, [finding("second", 20_000, None), finding("first", 10_000, 17_400)])
    _, first, second, legend = [line.split() for line in text(shown).splitlines()]
    assert first[2:] == ["7", "s", "resolved", "first"]
    assert second[2:] == ["–", "open", "second"]
    assert legend == ["▲", "critical", "●", "warning", "○", "notice"]


def test_the_end_says_where_the_report_is_and_what_comes_next(tmp_path: Path):
    shown = console()
    show_next(shown, DemoDirectory(tmp_path / "x" / ".." / "demo"))
    first, *steps = text(shown).splitlines()
    assert first == f"report {tmp_path}/demo/report.html"
    assert f"{tmp_path}/demo/report.html  opens the report" in steps[0]
    assert [step.split()[:2] for step in steps[1:]] == [["ottla", "demo"], ["ottla", "storage"]]


def test_accounts():
    shown = console()
    good, bad = (
        Account("risk-checks", "payments", 1_200, 1_188),
        Account("billing", "orders", 5, 4, ("1 not committed",)),
    )
    assert show_accounts(shown, [good])
    assert "all 1,200 records of payments accounted for, 12 archived as poison" in text(shown)
    assert not show_accounts(shown, [good, bad])
    assert "billing, orders: 1 not committed" in text(shown)


def test_expectations():
    shown = console()
    assert show_expectations(shown, [Expectation("one", True, "")])
    assert "expectations met: 1 of 1" in text(shown)
    assert not show_expectations(shown, [Expectation("one", True, ""), Expectation("two", False, "three")])
    assert "expectations met: 1 of 2\n  not met: two; found: three" in text(shown)
