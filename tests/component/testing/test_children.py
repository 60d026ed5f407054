"""Orders to child processes, and their answers."""

import pytest

from ottla.testing.children import ChildError, ChildProcess


def test_an_answer_that_comes_too_late_is_not_that_of_the_next_order() -> None:
    relay = ChildProcess("ottla.testing.clusters.relay", "the relay")
    try:
        with pytest.raises(ChildError, match="the relay printed nothing for 0 s"):
            relay.ask({"links": []}, seconds=0)
        assert relay.ask({"cut": []}) is None
        assert relay.ask({"links": []}) == []
    finally:
        relay.kill()
