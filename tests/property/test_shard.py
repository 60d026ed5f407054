"""A shard under everything that can happen to it: what it says is committed, and what it holds is what the log says."""

from __future__ import annotations

from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.core.coordinator.contract import Outcome, Producer
from ottla.wire.errors import ErrorCode
from tests.unit.broker.coordinators.bench import Bench
from tests.unit.broker.coordinators.ledger import told

NAMES = st.sampled_from("abc")
NUMBERS = st.integers(1, 5)
VERBS = ["put", "note", "get", "drop", "txn", "park", "free", "after", "errand"]


class ShardMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.tokens = count()
        self.asked: dict[int, int] = {}
        """Token -> where the log ended when it was decided."""
        self.answered: set[int] = set()
        self.timed: set[int] = set()
        """Tokens that only a timer knows: they go with it."""
        self.gone: set[int] = set()

    def ask(self, verb: str, name: str = "a", number: int = 0) -> None:
        token = next(self.tokens)
        self.bench.ask(token, verb, name, number)
        self.asked[token] = self.bench.shard.end_offset
        self.hear()

    def hear(self) -> None:
        """Nobody is answered twice, and nobody hears a number before it is committed."""
        for token, answer in self.bench.take():
            assert token not in self.answered
            self.answered.add(token)
            if not isinstance(answer, ErrorCode):
                assert self.asked.get(token, 0) <= self.bench.writer.high_watermark or token not in self.asked

    # --- requests -----------------------------------------------------------------------------------------------------

    @rule(
        verb=st.sampled_from(["put", "note", "get", "drop", "txn", "park", "free", "after", "errand"]),
        name=NAMES,
        n=NUMBERS,
    )
    def request(self, verb: str, name: str, n: int) -> None:
        self.ask(verb, name, n)

    @rule(n=st.integers(1, 20))
    def many(self, n: int) -> None:
        self.ask("many", "m", n)

    @rule(verb=st.sampled_from(["bug", "large"]))
    def fail(self, verb: str) -> None:
        self.ask(verb, "a", 50_000)

    @rule(producer_id=NUMBERS, committed=st.booleans())
    def end_transaction(self, producer_id: int, committed: bool) -> None:
        token = next(self.tokens)
        self.bench.shard.end_transaction(
            Producer(producer_id, 0),
            token,
            told(0),
            committed=committed,
            coordinator_epoch=0,
            transaction_version=1,
        )
        self.asked[token] = self.bench.shard.end_offset
        self.hear()

    @rule(name=NAMES, ms=st.integers(1, 9_000))
    def later(self, name: str, ms: int) -> None:
        self.ask("later", name, ms)
        self.timed.add(max(self.asked))

    # --- the log ------------------------------------------------------------------------------------------------------

    @rule()
    def commit(self) -> None:
        self.bench.commit()
        self.hear()

    @rule()
    def write(self) -> None:
        self.bench.write()
        self.hear()

    @rule(part=st.floats(0, 1))
    def commit_some(self, part: float) -> None:
        self.bench.write()
        writer = self.bench.writer
        writer.high_watermark += int(part * (writer.log_end_offset - writer.high_watermark))
        self.bench.shard.advance()
        self.hear()

    @rule(ms=st.integers(1, 6_000))
    def wait(self, ms: int) -> None:
        self.bench.advance(ms)
        self.hear()

    @precondition(lambda self: self.bench.edge.effects)
    @rule(value=NUMBERS)
    def settle(self, value: int) -> None:
        _, done = self.bench.edge.effects.pop()
        done(Outcome(value=value))
        self.hear()

    @rule()
    def refuse_transactions(self) -> None:
        """Only what stands in a batch of its own: a refused batch that was replayed loses the shard."""
        self.bench.write()
        self.bench.writer.refusal = ErrorCode.KAFKA_STORAGE_ERROR
        self.ask("txn", "a", 1)
        self.bench.writer.refusal = None

    @rule()
    def lose(self) -> None:
        """Somebody else leads, and what was not written is gone; then the log is loaded again."""
        self.bench.shard.unload()
        self.hear()
        self.gone |= self.timed - self.answered
        writer = self.bench.writer
        self.bench = Bench()
        self.bench.core, self.bench.writer = writer.replayed(), writer
        self.bench.shard.core, self.bench.shard.writer = self.bench.core, writer
        self.bench.shard.start()

    @invariant()
    def is_what_the_log_says(self) -> None:
        self.bench.write()
        assert not self.bench.edge.losses
        assert self.bench.writer.replayed().hard_state() == self.bench.core.hard_state()

    def teardown(self) -> None:
        """In the end everybody is told something."""
        self.bench.advance(20_000)
        self.bench.commit()
        self.bench.shard.unload()
        self.hear()
        assert self.asked.keys() - self.answered == self.gone


TestShard = ShardMachine.TestCase
TestShard.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
