"""One response that is put together from several answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from ottla.broker.network.request import DelayedResponse

Subject = TypeVar("Subject")
Result = TypeVar("Result")


def scatter_gather(
    subjects: Sequence[Subject],
    ask: Callable[[Subject, Callable[[Result], None]], None],
    finish: Callable[[list[Result]], Any],
) -> DelayedResponse:
    """Ask about each subject; `finish` makes the response from all results, in the order of subjects."""
    later = DelayedResponse()
    results: dict[int, Result] = {}

    def take(index: int, answer: Result) -> None:
        results[index] = answer
        if len(results) == len(subjects):
            later.complete(finish([results[each] for each in range(len(subjects))]))

    if not subjects:
        later.complete(finish([]))
    for index, subject in enumerate(subjects):
        ask(subject, partial(take, index))
    return later
