"""`ottla streams topology`: where it takes a topology from, what it makes of it, and what it says if there is none."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ottla.testing
from ottla.cli import run
from ottla.wire import types
from tests.component.broker.description_requests import Push
from tests.component.broker.description_requests import description as pushed
from tests.component.broker.raw_client import RawClient
from tests.component.broker.streams_requests import join
from tests.component.broker.streams_requests import topology as declared
from tests.component.cli.cluster_thread import fake_cluster

Capture = pytest.CaptureFixture[str]
Described = types.StreamsGroupDescribeResponse
GOLDEN = Path(__file__).parents[2] / "golden" / "topologies"
WORDS = ["streams", "topology"]


def answer(status: int, description: Any = None) -> Any:
    row = Described.DescribedGroup(0, None, "app", "Stable", 1, 1)
    fields = {name: getattr(row, name) for name in row.__struct_fields__}
    fields |= {"topology_description": description, "topology_description_status": status}
    return Described(groups=(Described.DescribedGroup(**fields),))


def description() -> Any:
    node = Described.TopologyDescriptionNode
    nodes = (
        node("read", 1, ("orders",), None, (), ("count",)),
        node("count", 2, (), None, ("counts",), ("write",)),
        node("write", 3, (), None, (), ()),
    )
    store = Described.TopologyDescriptionGlobalStore(
        node("read-all", 1, ("prices",), None, (), ("fill",)), node("fill", 2, (), None, ("prices-store",), ())
    )
    return Described.TopologyDescription((Described.TopologyDescriptionSubtopology("0", nodes),), (store,))


def test_text_in_the_terminal_is_drawn_with_everything_in_it(capsys: Capture):
    assert run([*WORDS, "--from", str(GOLDEN / "word-count.txt")]) == 0
    shown = capsys.readouterr().out
    for word in ("subtopology 0", "KSTREAM-FLATMAPVALUES-0000000001", " repartition topic ", " store ", "word-counts"):
        assert word in shown


@pytest.mark.parametrize("shape", [[], ["--svg"], ["--width", "20"]])
def test_short_names(shape: list[str], capsys: Capture):
    assert run([*WORDS, "--from", str(GOLDEN / "word-count.txt"), "--names", "short", *shape]) == 0
    shown = capsys.readouterr().out
    assert "flatmapvalues 1" in shown
    assert ("KSTREAM-FLATMAPVALUES-0000000001" in shown) == ("--svg" in shape), "SVG has it as a hint"


def test_a_narrow_terminal_gets_an_outline(capsys: Capture):
    assert run([*WORDS, "--from", str(GOLDEN / "shop.txt"), "--width", "60"]) == 0
    shown = capsys.readouterr().out
    assert "├─ processor by-region\n" in shown
    assert "┌" not in shown


def test_ascii(capsys: Capture):
    assert run([*WORDS, "--from", str(GOLDEN / "strange-names.txt"), "--ascii"]) == 0
    assert capsys.readouterr().out.isascii()


@pytest.mark.parametrize(("ending", "begins"), [("svg", "<svg "), ("json", "{"), ("txt", " ")])
def test_the_file_says_the_format(ending: str, begins: str, tmp_path: Path):
    out = tmp_path / f"drawn.{ending}"
    assert run([*WORDS, "--from", str(GOLDEN / "stateless.txt"), "--out", str(out)]) == 0
    assert out.read_text().startswith(begins)


def test_json(capsys: Capture):
    assert run([*WORDS, "--from", str(GOLDEN / "routing.txt"), "--format", "json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["subtopologies"]
    assert first["nodes"][0]["pattern"] == "events-[a-z]+(, old)?"
    assert first["nodes"][1] == {"name": "KSTREAM-SINK-0000000001", "type": "sink", "topic": None, "successors": []}
    assert second["nodes"][0]["topics"] == ["audit-b", "audit-c", "audit-a"]


def test_a_group_is_drawn_if_the_cluster_has_its_description(capsys: Capture):
    with fake_cluster(StreamsGroupDescribe=answer(3, description())) as cluster:
        assert run([*WORDS, "app", "--bootstrap-server", cluster.bootstrap_servers]) == 0
        (request,) = [
            each for each in cluster.brokers[1].requests if "StreamsGroupDescribe" in type(each.body).__name__
        ]
        assert request.body.include_topology_description
    shown = capsys.readouterr().out
    for word in ("subtopology 0", "global store 1", "counts", "prices-store", "chosen per record"):
        assert word in shown


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (1, "the cluster has no topology description"),
        (2, "the cluster's plugin failed to return the topology description"),
    ],
)
def test_without_a_description_the_way_out_is_named(status: int, reason: str, capsys: Capture):
    with fake_cluster(StreamsGroupDescribe=answer(status)) as cluster:
        assert run([*WORDS, "app", "--bootstrap-server", cluster.bootstrap_servers]) == 2
    said = capsys.readouterr().err
    assert f"group app: {reason}" in said
    assert "--from" in said


def test_brokers_without_descriptions_are_not_asked_for_one(capsys: Capture):
    with fake_cluster(StreamsGroupDescribe=answer(0)) as cluster:
        cluster.brokers[1].versions["StreamsGroupDescribe"] = (0, 0)
        assert run([*WORDS, "app", "--bootstrap-server", cluster.bootstrap_servers]) == 2
    assert "do not store topology descriptions" in capsys.readouterr().err


def test_an_unknown_group_is_refused_in_the_broker_s_words(capsys: Capture):
    refused = Described(groups=(Described.DescribedGroup(69, "not here", "app"),))
    with fake_cluster(StreamsGroupDescribe=refused) as cluster:
        assert run([*WORDS, "app", "--bootstrap-server", cluster.bootstrap_servers]) == 1
    assert "GROUP_ID_NOT_FOUND" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["app", "--from", str(GOLDEN / "stateless.txt")]])
def test_one_source_and_only_one(words: list[str], capsys: Capture):
    assert run([*WORDS, *words]) == 2
    assert "give either a GROUP or --from FILE" in capsys.readouterr().err


def test_text_that_is_something_else_is_refused_with_its_name(tmp_path: Path, capsys: Capture):
    page = tmp_path / "page.txt"
    page.write_bytes(b"\xff\xfe")
    assert run([*WORDS, "--from", str(page)]) == 2
    assert f"{page} is not text in UTF-8" in capsys.readouterr().err
    page.write_text("Topologies:\n  Sub-topology: 0\n    Sauce: a (topics: [b])\n")
    assert run([*WORDS, "--from", str(page)]) == 2
    assert "line 3: expected a source, a processor or a sink, found 'Sauce: a (topics: [b])'" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, capsys: Capture):
    out = tmp_path / "missing" / "drawn.svg"
    assert run([*WORDS, "--from", str(GOLDEN / "stateless.txt"), "--out", str(out)]) == 2
    assert f"cannot write {out}: No such file or directory" in capsys.readouterr().err


@pytest.fixture(scope="module")
def described_app() -> Iterator[str]:
    """The address of a node of ours that keeps the description of a group `app`."""
    plugin = {"group.streams.topology.description.plugin.class": "ottla.topology_descriptions.TopicPlugin"}
    with ottla.testing.broker(**plugin) as broker:
        client = RawClient("127.0.0.1", broker.port)
        assert client.ask(join("app", "A", declared(client.topic().name)), 1).topology_description_required
        assert client.ask(Push("app", "A", 0, pushed("orders")), 0).error_code == 0
        client.close_all()
        yield broker.bootstrap_servers


@pytest.mark.parametrize(("option", "begins"), [("--svg", "<svg "), ("--json", "{"), ("--ascii", " ")])
def test_a_group_of_ours_is_drawn(option: str, begins: str, described_app: str, capsys: Capture) -> None:
    assert run([*WORDS, "app", option, "--bootstrap-server", described_app]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(begins)
    for word in ("orders", "count", "counts", "results", "facts"):
        assert word in shown
