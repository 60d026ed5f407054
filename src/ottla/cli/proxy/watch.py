"""The output of the proxy: exchanges on standard output, notes about itself on standard error."""

from collections.abc import Callable, Iterable

from ottla.cli.proxy.address import Address
from ottla.cli.proxy.fronts import FRONTS_MAX, Front
from ottla.cli.proxy.pcap import PcapWriter
from ottla.cli.proxy.relay import Link
from ottla.cli.proxy.session import may_lead_away
from ottla.cli.proxy.show import Show
from ottla.cli.proxy.summary import Summary
from ottla.explain.exchanges import Exchange, Side
from ottla.explain.facts import exchange_facts
from ottla.explain.show_exchange import Label

Note = Callable[[str], None]


class Watch:
    """The proxy's watcher: it filters, shows, counts and saves."""

    def __init__(self, show: Show, note: Note, saved: PcapWriter | None = None) -> None:
        self.summary = Summary()
        self.connections = 0
        self.filtered_out = 0
        self._show = show
        self._note = note
        self._saved = saved
        self._said: set[object] = set()

    def front_opened(self, front: Front) -> None:
        if front.node_id is None:
            self._note(f"ottla proxy ready {front.at} -> {front.upstream}")
        else:
            self._note(f"node {front.node_id} ({front.upstream}) is reachable at {front.at}")

    def front_missing(self, upstream: Address) -> None:
        self._note_once("full", f"more than {FRONTS_MAX} addresses: clients will connect to {upstream} directly")

    def connected(self, link: Link, at_ns: int) -> None:
        self.connections += 1
        self._said.discard(link.upstream)
        self._save(lambda saved: saved.connected(link, at_ns))

    def moved(self, link: Link, sender: Side, data: bytes, at_ns: int) -> None:
        self._save(lambda saved: saved.moved(link, sender, data, at_ns))

    def exchanged(self, link: Link, exchanges: Iterable[Exchange]) -> None:
        label = Label(link.number, str(link.client), str(link.upstream))
        for exchange in exchanges:
            facts = exchange_facts(exchange, self._show.topic_names)
            if not self._show.filters.admits(exchange, facts):
                self.filtered_out += 1
                continue
            self.summary.add(exchange, facts)
            self._show.exchange(exchange, facts, label)
            self._warn_of_unread_addresses(exchange)
        self._show.flush()

    def turned_foreign(self, link: Link, sender: Side, why: str) -> None:
        self._note(f"connection #{link.number} from {link.client}: cannot read the {sender.value}: {why}")

    def closed(self, link: Link, at_ns: int) -> None:
        self._save(lambda saved: saved.closed(link, at_ns))

    def refused(self, front: Front, why: str) -> None:
        # A client retries often: note it once, until a connection has succeeded.
        self._note_once(front.upstream, f"cannot reach {front.upstream}: {why}")

    def _save(self, write: Callable[[PcapWriter], None]) -> None:
        if self._saved is None:
            return
        try:
            write(self._saved)
        except OSError as refusal:  # a full disk must not stop the traffic
            self._note(f"the capture cannot be written ({refusal.strerror}) and is incomplete")
            self._saved = None

    def _warn_of_unread_addresses(self, exchange: Exchange) -> None:
        response = exchange.response
        if response is not None and may_lead_away(exchange):
            what = f"{response.api} v{response.version}"
            self._note_once(what, f"{what} could not be read: clients may bypass the proxy")

    def _note_once(self, key: object, text: str) -> None:
        if key not in self._said:
            self._said.add(key)
            self._note(text)
