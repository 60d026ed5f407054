"""The tour through the pages and the decoder."""

from rich.text import Text

from ottla.cli.tour.step import Stage, Step
from ottla.cli.tour.wire import HEARTBEAT, NAME, VERSION
from ottla.explain.assemble import message_page
from ottla.explain.dissect import dissect
from ottla.explain.guess import guess
from ottla.explain.render.terminal import hex_lines
from ottla.explain.show_tree import tree_lines
from ottla.wire import frames


def page(stage: Stage) -> None:
    shown = message_page("ShareFetchRequest", 2)
    stage.show(Text("$ ottla explain ShareFetch 2 request", style="bold"))
    stage.show(
        f"{len(shown.errors)} related errors, each with what it means here; the example's bytes, field by field:"
    )
    stage.lines(hex_lines(shown, stage.width))
    best = guess(shown.example.data).best
    stage.check("the bytes are a real message", best is not None and best.name == "ShareFetchRequest")


def unknown_bytes(stage: Stage) -> None:
    data = frames.write_request(HEARTBEAT, VERSION, correlation_id=7, client_id="orders-app-1")
    verdict = guess(data)
    best = verdict.best
    assert best is not None
    stage.show(Text(f"$ ottla decode {data.hex()[:48]}...", style="bold"))
    stage.show(f"{best.name} v{best.version}: {verdict.phrase}")
    taken = dissect(data, best.name, best.version, best.wrapping)
    stage.lines(tree_lines(taken.nodes, data, stage.width))
    stage.check("the guess is right", (best.name, best.version) == (NAME, VERSION))
    stage.check("no byte is left over", taken.rest_bytes == 0 and taken.error is None)


def half_a_message(stage: Stage) -> None:
    half = frames.write_request(HEARTBEAT, VERSION, correlation_id=7)[:50]
    verdict = guess(half)
    best = verdict.best
    assert best is not None
    assert best.error is not None
    stage.show(f"{best.name}: {verdict.phrase}; {best.error}")
    stage.check("it names the truncated field", best.error.path == f"{NAME}.MemberEpoch")


STEPS = (
    Step("a page about a message", "Purpose, errors, diagram, schema, example and bytes of every version.", page),
    Step("unknown bytes", "The decoder guesses the message and reports its certainty.", unknown_bytes),
    Step("an incomplete message", "A truncated message is decoded as far as possible.", half_a_message),
)
