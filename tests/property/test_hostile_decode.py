"""Broken messages and batches are shown as far as they go; nothing that is printed raises."""

import json
import random

from ottla.explain.as_json import body_json, tree_json
from ottla.explain.dissect import dissect_batches, dissect_message
from ottla.explain.guess import guess
from ottla.explain.show_tree import tree_lines
from ottla.explain.tree import Node
from tests.property.mutation import mutations
from tests.unit.wire import batch_vectors

MESSAGES = 2_000
BATCHES = 1_000
GUESSES = 40


def show(node: Node, data: bytes) -> None:
    json.dumps([tree_json(node), body_json(node)])
    for _ in tree_lines([node], data, 80, shows_marks=True):
        pass


def test_broken_messages_break_off_at_a_byte_that_exists():
    for broken in mutations(seed=1, count=MESSAGES):
        root, error = dissect_message(broken.name, broken.version, broken.data)
        show(root, broken.data)
        assert root.end <= len(broken.data)
        if error is None:
            assert root.end == len(broken.data)
        else:
            assert error.byte_offset is not None
            assert 0 <= error.byte_offset <= len(broken.data)


def test_broken_batches_keep_within_their_bytes():
    source = random.Random(2)
    good = [batch_vectors.raw(vector) for vector in batch_vectors.good()]
    for _ in range(BATCHES):
        data = bytearray(source.choice(good))
        for _ in range(source.randint(1, 4)):
            data[source.randrange(len(data))] = source.choice((0, 1, 0x7F, 0x80, 0xFF))
        cut = bytes(data[: source.randint(1, len(data))])
        for node in dissect_batches(cut):
            show(node, cut)
            assert node.end <= len(cut)


def test_anything_can_be_guessed_at():
    for broken in mutations(seed=3, count=GUESSES):
        verdict = guess(broken.data)
        assert 0.0 <= verdict.sureness <= 1.0
