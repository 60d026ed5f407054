"""One answer made of several that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from ottla.broker.network.request import Later

Asked = TypeVar("Asked")
Heard = TypeVar("Heard")


def gather(
    subjects: Sequence[Asked],
    ask: Callable[[Asked, Callable[[Heard], None]], None],
    finish: Callable[[list[Heard]], Any],
) -> Later:
    """Ask about each subject, and answer with what `finish` makes of all that was heard, in the order of subjects."""
    later = Later()
    heard: dict[int, Heard] = {}

    def take(index: int, answer: Heard) -> None:
        heard[index] = answer
        if len(heard) == len(subjects):
            later.complete(finish([heard[each] for each in range(len(subjects))]))

    if not subjects:
        later.complete(finish([]))
    for index, subject in enumerate(subjects):
        ask(subject, partial(take, index))
    return later
