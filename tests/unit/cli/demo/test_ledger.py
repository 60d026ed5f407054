from pathlib import Path

import pytest

from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.demo.ledger import Account, accounts
from tests.unit.cli.demo.journals import balanced, ground_in, ranges, write


@pytest.fixture
def directory(tmp_path: Path) -> DemoDirectory:
    made = ground_in(tmp_path)
    balanced(made)
    return made


def of(directory: DemoDirectory, group: str) -> Account:
    return next(each for each in accounts(directory) if each.group == group)


def test_everything_is_accounted_for(directory: DemoDirectory):
    assert [(each.group, each.written, each.done) for each in accounts(directory)] == [
        ("billing", 10, 10),
        ("audit", 10, 10),
        ("risk-checks", 10, 9),
        ("word-totals", 4, 4),
    ]
    assert all(each.is_balanced for each in accounts(directory))


def test_a_record_that_nobody_committed(directory: DemoDirectory):
    write(directory, "billing-2", [ranges("committed", ("orders", 0, 6, 9))])
    assert of(directory, "billing").wrong == ("1 not committed, first orders-0 offset 5",)


def test_a_member_that_was_killed_before_it_wrote_its_last_commit_down(directory: DemoDirectory):
    whole = [ranges("commits", ("orders", 0, 0, 2)), ranges("committed", ("orders", 0, 0, 2))]
    write(directory, "billing-1", [*whole, ranges("commits", ("orders", 0, 3, 4))])
    assert (of(directory, "billing").done, of(directory, "billing").wrong) == (10, ())


def test_a_commit_that_was_refused_when_it_was_asked_for_again(directory: DemoDirectory):
    tried = [ranges("commits", ("orders", 0, 3, 4)), ranges("committed"), ranges("commits", ("orders", 0, 10, 11))]
    write(directory, "billing-1", [ranges("committed", ("orders", 0, 0, 2)), *tried, ranges("committed")])
    assert of(directory, "billing").wrong == ()


def test_a_record_that_two_members_committed(directory: DemoDirectory):
    write(directory, "billing-2", [ranges("committed", ("orders", 0, 3, 9))])
    assert of(directory, "billing").wrong == ("2 committed twice, first orders-0 offset 3",)


def test_a_payment_that_nobody_accepted(directory: DemoDirectory):
    write(directory, "risk-checks", [ranges("accepted", ("payments", 0, 0, 2), ("payments", 0, 4, 8))])
    assert of(directory, "risk-checks").wrong == ("1 not accepted, first payments-0 offset 9",)


def test_a_payment_that_was_accepted_twice(directory: DemoDirectory):
    once = ranges("accepted", ("payments", 0, 0, 2), ("payments", 0, 4, 9))
    write(directory, "risk-checks", [once, ranges("accepted", ("payments", 0, 7, 7))])
    assert of(directory, "risk-checks").wrong == ("1 accepted twice, first payments-0 offset 7",)


def test_where_an_answer_got_lost_twice_is_allowed(directory: DemoDirectory):
    once = ranges("accepted", ("payments", 0, 0, 2), ("payments", 0, 4, 9))
    again = [ranges("doubted", ("payments", 0, 7, 7)), ranges("accepted", ("payments", 0, 7, 7))]
    write(directory, "risk-checks", [once, *again])
    assert of(directory, "risk-checks").is_balanced


def test_poison_that_was_accepted(directory: DemoDirectory):
    write(directory, "risk-checks", [ranges("accepted", ("payments", 0, 0, 9))])
    assert of(directory, "risk-checks").wrong == ("1 poison, but accepted, first payments-0 offset 3",)


@pytest.mark.parametrize(("words", "wrong"), [((12, 8), ()), ((12, 9), ()), ((12, 7), ("1 words not counted",))])
def test_kafka_streams_counts_words_at_least_once(
    directory: DemoDirectory, words: tuple[int, int], wrong: tuple[str, ...]
):
    for number, count in enumerate(words, 1):
        write(directory, f"word-totals-{number}", [{"what": "counted", "words": count}])
    assert of(directory, "word-totals").wrong == wrong


def test_the_last_line_of_a_killed_process_may_be_cut_short(directory: DemoDirectory):
    with directory.journal_of("billing-2").open("a") as file:
        file.write('{"at_ms": 5, "what": "comm')
    assert of(directory, "billing").is_balanced
