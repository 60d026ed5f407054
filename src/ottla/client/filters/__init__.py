"""Filters for records: a closed little language, the same wherever records are looked at.

    value.amount > 100 and key ~ "^eu-"
    headers["trace-id"] == "7f" or not (partition in [0, 2])

`and`, `or`, `not` and parentheses; `==`, `!=`, `<`, `<=`, `>`, `>=`, `in [...]`, and `~` for a regular expression of
RE2 that is found somewhere; texts, numbers, `true`, `false`, `null`; and paths that begin with `key`, `value`,
`headers`, `topic`, `partition`, `offset`, `timestamp` or `size`. What a record does not have is `null`. A text that is
compared with a number counts as the number that it says. Nothing a filter says is executed: it becomes a tree of at
most `STEPS_MAX` steps, each of which is walked once for a record.
"""

from ottla.client.filters.expressions import Filter, Row
from ottla.client.filters.language import STEPS_MAX, FilterError, compile_filter

__all__ = ["STEPS_MAX", "Filter", "FilterError", "Row", "compile_filter"]
