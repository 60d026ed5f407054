from pathlib import Path

from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.demo.plan import Plan
from ottla.cli.demo.truth import collect
from tests.unit.cli.demo.journals import balanced, ground_in, write


def story(directory: DemoDirectory) -> None:
    write(
        directory,
        "story",
        [
            {"what": "cluster", "bootstrap": "b:1"},
            {"what": "began"},
            {"what": "second-app", "at_ms": 100},
            {"what": "member-killed", "at_ms": 200},
            {"what": "taken-over", "at_ms": 206},
            {"what": "node-killed", "at_ms": 300, "node": 1, "led": 7, "led_quorum": True, "epoch_before": 1},
            {"what": "led-by-others", "at_ms": 309},
            {
                "what": "node-back",
                "at_ms": 317,
                "restarted_ms": 315,
                "ready_ms": 316,
                "in_sync_ms": 317,
                "leader_after": 2,
                "epoch_after": 2,
            },
            {"what": "storm", "at_ms": 400},
            {"what": "calm", "at_ms": 430},
            {"what": "drained", "at_ms": 500},
        ],
    )


def truth_in(path: Path) -> tuple[DemoDirectory, dict[str, object]]:
    directory = ground_in(path)
    balanced(directory)
    story(directory)
    owned = [{"what": "owns", "member": "m2", "partitions": [["orders", at]]} for at in (4, 2)]
    write(directory, "billing-2", owned)
    write(directory, "word-totals-1", [
        {"what": "tasks", "at_ms": 90, "tasks": ["0_0", "0_1"]},
        {"what": "tasks", "at_ms": 110, "tasks": ["0_0"]},
        {"what": "tasks", "at_ms": 510, "tasks": []},
    ])  # fmt: skip
    write(directory, "word-totals-2", [{"what": "owns", "at_ms": 111, "partitions": [["lines", 1]]}])
    write(directory, "risk-checks", [
        {"what": "delivered", "at_ms": 399, "counts": {"1": 50}},
        {"what": "delivered", "at_ms": 410, "counts": {"1": 10, "2": 9}},
        {"what": "delivered", "at_ms": 420, "counts": {"2": 1, "3": 8}},
    ])  # fmt: skip
    return directory, collect(directory, Plan(3, 2.0))


def test_the_member_by_its_own_word(tmp_path: Path):
    _, truth = truth_in(tmp_path)
    assert truth["member_killed"] == {
        "group": "billing", "client": "billing-2", "member": "m2", "partitions": [["orders", 2]],
        "at_ms": 200, "taken_over_ms": 206,
    }  # fmt: skip


def test_the_node(tmp_path: Path):
    _, truth = truth_in(tmp_path)
    assert truth["node_killed"] == {
        "node": 1, "led": 7, "led_quorum": True, "epoch_before": 1, "at_ms": 300, "led_by_others_ms": 309,
        "restarted_ms": 315, "ready_ms": 316, "in_sync_ms": 317, "leader_after": 2, "epoch_after": 2,
    }  # fmt: skip


def test_the_storm_counts_what_was_delivered_in_it(tmp_path: Path):
    _, truth = truth_in(tmp_path)
    assert truth["storm"] == {
        "group": "risk-checks", "from_ms": 400, "to_ms": 430, "deliveries": {1: 10, 2: 10, 3: 8},
    }  # fmt: skip


def test_tasks_before_and_after_the_second_process_came(tmp_path: Path):
    _, truth = truth_in(tmp_path)
    assert truth["task_move"] == {
        "group": "word-totals",
        "at_ms": 100,
        "before": {"word-totals-1": ["0_0", "0_1"], "word-totals-2": []},
        "after": {"word-totals-1": ["0_0"], "word-totals-2": ["0_1"]},
    }


def test_the_rest(tmp_path: Path):
    _, truth = truth_in(tmp_path)
    assert truth["poison"] == [["payments", 0, 3]]
    assert truth["written"] == {"orders": 10, "payments": 10, "lines": 4}
    assert (truth["seed"], truth["speed"], truth["ended_ms"]) == (3, 2.0, 500)


def test_a_story_that_was_broken_off(tmp_path: Path):
    directory = ground_in(tmp_path)
    balanced(directory)
    write(directory, "story", [{"what": "cluster"}, {"what": "began"}])
    truth = collect(directory, Plan())
    assert truth["ended_ms"] is None
    assert "storm" not in truth
