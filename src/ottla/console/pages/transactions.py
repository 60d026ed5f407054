"""Transactions: open ones, old ones, those that hang, and who blocks the readers of committed records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from ottla.client import Client, ClientError
from ottla.client.open_transactions import (
    AT_A_TIME,
    IDLE,
    STATES,
    ListedTransaction,
    TransactionDescription,
    try_describe,
    try_list,
)
from ottla.console.html.findings import finding_cards
from ottla.console.html.navigation import Choice, Text, every_one_of, filter_form
from ottla.console.html.parts import Column, badge, code, link, more, nothing, numbers, offset, section, table
from ottla.console.page import Content, Degraded, Page, PageContext, one_page, why_not
from ottla.console.page_parts import Part, load_part
from ottla.draw.forms import ago
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health.facts import Transaction
from ottla.health.phrases import number, plural

OPEN = "open"
HANGING = "hanging"
NEEDS = "DESCRIBE on transactional ids"
BLOCKED_MAX = 100
PARTITIONS_SHOWN = 6
REQUESTS_MAX = 36
TOO_MANY = "there are more coordinators than one page may ask"
FIELDS = (Choice("state", "State", every_one_of((OPEN, HANGING, *STATES))), Text("q", "Transactional id contains"))


class Place(msgspec.Struct, frozen=True):
    topic: str
    p: int
    first_offset: int | None
    """Where the transaction begins in the partition, if that was seen."""


class TransactionRow(msgspec.Struct, frozen=True):
    id: str | None
    """None if it hangs: no coordinator knows it."""
    state: str
    producer_id: int
    epoch: int | None
    started_ms: int | None
    timeout_ms: int | None
    partitions: list[Place]
    coordinator: int | None
    hanging: bool
    is_old: bool
    """Open for longer than its timeout."""


class Blocked(msgspec.Struct, frozen=True):
    """A partition in which readers of committed records wait at the last stable offset."""

    topic: str
    p: int
    last_stable: int
    id: str | None
    producer_id: int
    started_ms: int | None
    hanging: bool


class Transactions(msgspec.Struct, frozen=True):
    rows: list[TransactionRow]
    listed: int | None
    """How many coordinators list; None if none tells."""
    open: int | None
    hanging: int
    blocked: list[Blocked]
    """Those whose transactions are oldest."""
    blocked_count: int


class Listing(NamedTuple):
    transactions: list[ListedTransaction]
    refusals: list[tuple[int, ClientError]]
    requests: int
    left_out: int
    """Brokers that were not asked, because there are more than one page may ask."""


Details = dict[str, TransactionDescription]


async def load(context: PageContext) -> Content[Transactions]:
    context.choice("state", FIELDS[0].values)
    sampled = _sampled(context)
    listed = await load_part(context, "list of transactions", ("transactions",), _list, needs=NEEDS)
    listing = listed.value or Listing([], [], 0, 0)
    brief = _wanted([*map(_hanging, filter(_hangs, sampled)), *map(_brief, listing.transactions)], context)
    shown, next_name = one_page(sorted(brief, key=_place), _place, context)
    details = await _described(context, shown, REQUESTS_MAX - listing.requests)
    blocked = blocked_by(sampled)
    data = Transactions(
        rows=[_whole(each, (details.value or {}).get(each.id or ""), sampled, context.now_ms) for each in shown],
        listed=None if listed.value is None else len(listing.transactions),
        open=None if listed.value is None else sum(each.state not in IDLE for each in listing.transactions),
        hanging=sum(map(_hangs, sampled)),
        blocked=blocked[:BLOCKED_MAX],
        blocked_count=len(blocked),
    )
    refused = [Degraded(f"transactions of node {node_id}", why_not(error, context.watcher.principal))
               for node_id, error in listing.refusals]  # fmt: skip
    if listing.left_out:
        refused.append(Degraded(f"transactions of {plural(listing.left_out, 'broker')}", TOO_MANY))
    return Content(
        data,
        "Transactions",
        [*context.sources("transactions"), *listed.sources, *details.sources],
        [*context.hidden("transactions"), *listed.degraded, *details.degraded, *refused],
        live=("transactions", "transaction", "finding"),
        next=next_name,
    )


async def _list(client: Client) -> Listing:
    outcomes = await try_list(client, REQUESTS_MAX)
    told = [each for some in outcomes.values() if not isinstance(some, ClientError) for each in some]
    refusals = [(node_id, each) for node_id, each in outcomes.items() if isinstance(each, ClientError)]
    return Listing(told, refusals, len(outcomes), len(client.metadata.brokers) - len(outcomes))


def by_coordinator(rows: Iterable[TransactionRow], requests_max: int) -> tuple[dict[int, list[str]], int]:
    """The transactions that a page describes, by coordinator, and how many it leaves out. The first rows come first."""
    names: dict[int, list[str]] = {}
    left_out = requests = 0
    for each in rows:
        if each.id is None or each.coordinator is None:
            continue
        is_new_request = len(names.get(each.coordinator, ())) % AT_A_TIME == 0
        if requests + is_new_request > requests_max:
            left_out += 1
            continue
        requests += is_new_request
        names.setdefault(each.coordinator, []).append(each.id)
    return names, left_out


async def _described(context: PageContext, rows: list[TransactionRow], requests_max: int) -> Part[Details]:
    """Only of the rows that are shown, and of as many coordinators as may be asked."""
    what = "transactions in detail"
    names, left_out = by_coordinator(rows, requests_max)
    missing = [Degraded(f"{number(left_out)} {what}", TOO_MANY)] if left_out else []
    if not names:
        return Part({}, [], missing)

    async def work(client: Client) -> tuple[Details, list[ClientError]]:
        asked = [try_describe(client, node_id, some) for node_id, some in names.items()]
        outcomes = {name: each for some in await client.together(asked) for name, each in some.items()}
        known = {name: each for name, each in outcomes.items() if isinstance(each, TransactionDescription)}
        return known, [each for each in outcomes.values() if isinstance(each, ClientError)]

    key = (what, *sorted(name for some in names.values() for name in some))
    found = await load_part(context, what, key, work, needs=NEEDS)
    if found.value is None:
        return Part(None, found.sources, found.degraded)
    details, errors = found.value
    refused = {why_not(each, context.watcher.principal): None for each in errors}
    return Part(details, found.sources, [*missing, *(Degraded(what, why) for why in refused)])


def _sampled(context: PageContext) -> list[Transaction]:
    """What the newest probe has seen: it looks at partitions, too, and so knows what hangs."""
    probed_ms = context.watcher.probed_ms("transactions") or 0
    return [each.fact for each in context.watcher.state.transactions() if each.at_ms >= probed_ms]


def _hangs(fact: Transaction) -> bool:
    return fact.id is None


def _hanging(fact: Transaction) -> TransactionRow:
    places = [Place(each.topic, each.partition, each.first_offset) for each in fact.partitions]
    return TransactionRow(None, HANGING, fact.producer, fact.producer_epoch, fact.started, None, places, None,
                          hanging=True, is_old=False)  # fmt: skip


def _brief(each: ListedTransaction) -> TransactionRow:
    return TransactionRow(each.transactional_id, each.state, each.producer_id, None, None, None, [], each.coordinator,
                          hanging=False, is_old=False)  # fmt: skip


def _whole(
    row: TransactionRow, found: TransactionDescription | None, sampled: Iterable[Transaction], now_ms: int
) -> TransactionRow:
    if found is None:
        return row
    offsets = {(each.topic, each.partition): each.first_offset
               for fact in sampled if fact.producer == found.producer_id for each in fact.partitions}  # fmt: skip
    is_open = found.state not in IDLE
    age_ms = None if found.started_ms is None else now_ms - found.started_ms
    return msgspec.structs.replace(
        row,
        state=found.state,
        producer_id=found.producer_id,
        epoch=found.producer_epoch,
        started_ms=found.started_ms,
        timeout_ms=found.timeout_ms,
        partitions=[Place(at.topic, at.partition, offsets.get(at)) for at in found.partitions],
        is_old=is_open and age_ms is not None and age_ms > found.timeout_ms,
    )


def _wanted(rows: list[TransactionRow], context: PageContext) -> list[TransactionRow]:
    state, text = context.query.get("state", ""), context.query.get("q", "").casefold()
    return [each for each in rows if _is_in(each, state) and text in (each.id or "").casefold()]


def _is_in(row: TransactionRow, state: str) -> bool:
    return state in ("", row.state) or (state == OPEN and row.state not in IDLE)


def _place(row: TransactionRow) -> str:
    """Hanging ones first, then those that are open."""
    rank = 0 if row.hanging else 1 + (row.state in IDLE)
    return f"{rank}{row.id or ''} {row.producer_id:020}"


def blocked_by(sampled: Iterable[Transaction]) -> list[Blocked]:
    """Who blocks the last stable offset of each partition: the transaction that begins first."""
    found: dict[tuple[str, int], Blocked] = {}
    for fact in sampled:
        for each in fact.partitions:
            known = found.get((each.topic, each.partition))
            if each.first_offset is None or (known is not None and known.last_stable <= each.first_offset):
                continue
            found[each.topic, each.partition] = Blocked(
                each.topic, each.partition, each.first_offset, fact.id, fact.producer, fact.started,
                hanging=fact.id is None,
            )  # fmt: skip
    return sorted(found.values(), key=lambda each: (each.started_ms or 0, each.topic, each.p))


# --- the page ---------------------------------------------------------------------------------------------------------


def render(content: Content[Transactions], context: PageContext) -> Markup:
    data, query = content.data, dict(context.query)
    return joined(
        [
            element("p", _lead(data), class_="lead"),
            _findings(context),
            section("Transactions that block read_committed consumers", _blocked(data, context), anchor="blocked"),
            section("All transactions", filter_form("/transactions", FIELDS, query), _list_of(content, context),
                    more(content.next, "/transactions", query), anchor="rows"),
        ]
    )  # fmt: skip


def _lead(data: Transactions) -> str:
    hanging = f", {data.hanging} more {'hangs' if data.hanging == 1 else 'hang'}" if data.hanging else ""
    if data.listed is None or data.open is None:
        return f"Number of open transactions unknown{hanging}."
    be = "is" if data.open == 1 else "are"
    return f"{data.open:,} of {plural(data.listed, 'transaction')} {be} open{hanging}."


def _findings(context: PageContext) -> Markup:
    found = [each for each in context.watcher.state.findings if each.is_open and each.subject.kind == "transaction"]
    return section("Findings", finding_cards(found, context.now_ms)) if found else NOTHING


def _blocked(data: Transactions, context: PageContext) -> Markup:
    if not data.blocked:
        return nothing("None: no open transaction was found in a partition.")
    columns = (Column("partition"), *numbers("last stable offset"), Column("transaction"), *numbers("open for"))
    rows = [(_partition(each.topic, each.p), offset(each.last_stable), _who(each), _age(each.started_ms, context))
            for each in data.blocked]  # fmt: skip
    rest = data.blocked_count - len(data.blocked)
    note = f"and {plural(rest, 'partition')} more" if rest else ""
    return table("Partitions with an open transaction", columns, rows, note)


def _who(each: Blocked) -> Markup:
    return code(each.id) if each.id is not None else _nobodys(each.producer_id)


def _nobodys(producer_id: int) -> Markup:
    return joined([f"producer {producer_id} ", badge("▲ hanging", "light critical")])


def _age(started_ms: int | None, context: PageContext) -> Markup:
    return ago(None if started_ms is None else context.now_ms - started_ms)


def _partition(topic: str, partition: int) -> Markup:
    return joined([link(topic, "topics", topic), f"-{partition}"])


def _list_of(content: Content[Transactions], context: PageContext) -> Markup:
    if content.data.listed is None and not content.data.rows:
        return nothing(f"Transactions cannot be listed: {content.degraded[-1].why}.")
    if not content.data.rows:
        why = "The cluster omits transactional ids that you may not DESCRIBE."
        return nothing(f"No transactions match. {why}" if context.query else f"No transactions. {why}")
    columns = (Column("transactional id"), Column("state"), *numbers("producer", "epoch", are_details=True),
               *numbers("open for"), *numbers("timeout", are_details=True),
               Column("partitions"))  # fmt: skip
    return table("Transactions", columns, [_cells(each, context) for each in content.data.rows])


def _cells(row: TransactionRow, context: PageContext) -> tuple[Markup | str | None, ...]:
    old = joined([" ", badge("● longer than its timeout", "light warning")]) if row.is_old else NOTHING
    return (
        code(row.id) if row.id is not None else _nobodys(row.producer_id),
        joined([row.state, old]),
        str(row.producer_id),
        None if row.epoch is None else str(row.epoch),
        None if row.state in IDLE else _age(row.started_ms, context),
        ago(row.timeout_ms),
        _places(row.partitions),
    )


def _places(places: list[Place]) -> Markup | str:
    rest = len(places) - PARTITIONS_SHOWN
    shown = [_partition(each.topic, each.p) for each in places[:PARTITIONS_SHOWN]]
    return joined([joined(shown, ", "), f" and {rest} more" if rest > 0 else ""]) if shown else "none"


PAGE = Page(
    "transactions", "/transactions", Transactions, load, render,
    query=frozenset({"state", "q", "after", "limit"}), section="transactions",
)  # fmt: skip
