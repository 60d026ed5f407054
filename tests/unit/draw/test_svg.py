"""SVG: complete in itself, safe with any name, and with nothing that hangs on colour or sight alone."""

import re
from xml.etree import ElementTree

import pytest

from ottla.draw.graph import NodeKind
from ottla.draw.layout import layout
from ottla.draw.palette import NODES, TEXT
from ottla.draw.svg import Segment, View, page_style, svg_part, svg_text
from ottla.draw.topology import SubtopologyTopics, graph_of_topics
from tests.unit.draw.pictures import NAMES, graph, plain

SVG = "{http://www.w3.org/2000/svg}"


def drawn(name: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg_text(layout(graph(name)), name))


def test_it_needs_nothing_from_elsewhere():
    text = svg_text(layout(graph("shop")), "shop")
    assert re.findall(r"https?://[^\"']*", text) == ["http://www.w3.org/2000/svg"]
    assert "<script" not in text


def test_names_are_text_whatever_is_in_them():
    text = svg_text(layout(graph("strange-names")), "<b>")
    assert "<script>" not in text
    assert "--&gt; &lt;script&gt;" in text


def test_title_and_description_say_what_is_seen():
    root = drawn("feedback")
    labels = {root.find(f"{SVG}{each}").get("id") for each in ("title", "desc")}  # type: ignore[union-attr]
    assert root.get("role") == "img"
    assert set((root.get("aria-labelledby") or "").split()) == labels
    told = root.findtext(f"{SVG}desc") or ""
    assert told.startswith("3 subtopologies, 3 × topic, 1 × repartition topic, 3 × source,")
    assert told.endswith("17 connections, 2 of them backwards.")


def test_every_box_and_line_has_a_hint():
    titles = [each.text for each in drawn("stateless").iter(f"{SVG}title")]
    assert "source KSTREAM-SOURCE-0000000000" in titles
    assert "KSTREAM-SOURCE-0000000000 → KSTREAM-FILTER-0000000001" in titles
    assert len(titles) == 1 + 6 + 5


def test_light_and_dark_have_the_same_colours_by_name():
    style = drawn("stateless").findtext(f"{SVG}style") or ""
    light, dark = re.findall(r":root\{([^}]*)\}", style)
    names = [re.findall(r"--([a-z-]+):", scheme) for scheme in (light, dark)]
    assert names[0] == names[1]
    assert "@media(prefers-color-scheme:dark)" in style
    assert set(re.findall(r"var\(--([a-z-]+)\)", style)) <= set(names[0])


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("kind", NodeKind)
@pytest.mark.parametrize("scheme", [0, 1])
def test_names_can_be_read_on_their_boxes(kind: NodeKind, scheme: int):
    one, other = sorted((luminance(TEXT[scheme]), luminance(NODES[kind].fill[scheme])))
    assert (other + 0.05) / (one + 0.05) >= 7


@pytest.mark.parametrize("name", NAMES)
def test_texts_do_not_touch(name: str):
    """By the lengths that the texts are given, which hold with any font."""
    places = []
    for text in drawn(name).iter(f"{SVG}text"):
        size = 9 if text.get("class") == "kind" else 12
        x, y, length = (float(text.get(each) or 0) for each in ("x", "y", "textLength"))
        places.append((y - 0.75 * size, y + 0.2 * size, x - length / 2, x + length / 2, text.text))
    places.sort()
    for at, (_, bottom, left, right, text) in enumerate(places):
        for top, _, other_left, other_right, other in places[at + 1 :]:
            if top >= bottom:
                break
            assert right <= other_left or other_right <= left, (text, other)


def test_a_line_back_is_marked():
    text = svg_text(layout(plain("a>b", "b>a")), "")
    assert text.count('class="flow back"') == 1
    assert text.count('class="flow"') == 1


def test_a_part_of_a_page_has_no_style_of_its_own():
    text = svg_part(layout(graph("strange-names")), "<b>", "one")
    assert "<style" not in text
    assert "style=" not in text
    assert "<script>" not in text
    assert set(re.findall(r'id="([^"]*)"', text)) == {"one-title", "one-desc", "one-arrow"}
    assert "url(#one-arrow)" in text


def test_the_style_of_pages_reaches_drawings_only():
    style = page_style()
    scopes = [selector for names in re.findall(r"([^{}]+)\{", style) for selector in names.split(",")]
    assert {scope.split()[0] for scope in scopes if scope.strip()} == {"svg.drawing"}
    assert "--topic:light-dark(#e8f1fb,#1b2a3d)" in style


def test_subtopologies_without_processors_are_drawn_with_their_topics():
    parts = [SubtopologyTopics("0", ("lines",), ("app-r",), ()), SubtopologyTopics("1", ("app-r",), (), ("app-log",))]
    text = svg_text(layout(graph_of_topics(parts)), "app")
    titles = [each.text for each in ElementTree.fromstring(text).iter(f"{SVG}title")]
    assert {"subtopology 0", "repartition topic app-r", "store app-log", "lines → 0", "app-r → 1"} <= set(titles)
    assert '<desc id="desc">1 × topic, 1 × repartition topic, 1 × store, 2 × subtopology, 4 connections.</desc>' in text


def test_a_part_of_a_page_has_the_size_that_is_asked_for():
    drawing = layout(plain("a>b"))
    sizes = [re.findall(r'width="(\d+)" height="(\d+)" viewBox', svg_part(drawing, "", view=View(zoom)))[0]
             for zoom in (1.0, 0.5, None)]  # fmt: skip
    (width, height), half, fitting = ((int(each) for each in size) for size in sizes)
    assert tuple(half) == (round(width / 2), round(height / 2))
    assert tuple(fitting) == (width, height)
    assert 'class="drawing fit"' in svg_part(drawing, "", view=View(None))


def test_titles_and_boxes_can_be_links():
    view = View(links={"subtopology:0": '/fold?a="1"&b=2', "subtopology:1": "/open"})
    root = ElementTree.fromstring(svg_part(layout(graph("word-count")), "", view=view))
    links = {each.get("href"): each for each in root.iter("a")}
    assert set(links) == {'/fold?a="1"&b=2', "/open"}
    assert links["/open"].findtext("title") == "fold subtopology 1"
    assert root.get("role") == "group"


def test_bars_are_divided_in_proportion_and_stay_inside_of_their_frame():
    view = View(bars={"subtopology:0": [Segment(3, "A", "h0", "<A>: 3"), Segment(1, "B", "h1", "B: 1")]})
    root = ElementTree.fromstring(svg_part(layout(graph("word-count")), "", view=view))
    frame = next(each for each in root.iter("rect") if each.get("class") == "frame")
    rects = [each.find("rect") for each in root.iter("g") if (each.get("class") or "").startswith("segment")]
    (x, y, height), (_, below, rest) = (
        [float(each.get(name) or 0) for name in ("x", "y", "height")] for each in rects if each is not None
    )
    assert (height, below) == (pytest.approx(3 * rest, abs=0.2), pytest.approx(y + height, abs=0.2))
    top, bottom = float(frame.get("y") or 0), float(frame.get("y") or 0) + float(frame.get("height") or 0)
    assert top < y
    assert below + rest < bottom
    assert float(frame.get("x") or 0) < x
    assert [each.findtext("title") for each in root.iter("g") if each.get("class") == "segment h0"] == ["<A>: 3"]
