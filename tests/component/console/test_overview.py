"""The overview: counts, findings, and what cannot be seen."""

from tests.component.console.served import Browser


def test_findings_come_first_and_the_rest_is_counted(browser: Browser):
    data = browser.until("/overview.json", lambda data: data["quorum"] is not None and bool(data["findings"]))
    assert [each["rule"] for each in data["findings"]] == ["single-voter"]
    assert data["quorum"] == {"leader": 1, "epoch": data["quorum"]["epoch"], "voters": 1}
    words = browser.page("/").words
    assert (
        words.index("Nothing is wrong that ottla can see") < words.index("The cluster") < words.index("Groups by kind")
    )
    assert "tolerates no failure at all" in words
    assert "cannot be checked here" in words
