"""An application goes on when the directory of its broker is taken over by the other broker, on the same port."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop.apache import dump_log
from tests.interop.streams.conftest import MakeApp, made
from tests.interop.streams.feeding import create, feed, wait_for, wait_until
from tests.interop.streams.groups import counts, described, is_stable, lines

KINDS = ("ottla", "apache")


@pytest.mark.parametrize("order", [KINDS, KINDS[::-1]], ids=["to apache", "to ottla"])
def test_a_streams_group_is_handed_over(
    order: tuple[str, str], apache_jars: Path, tmp_path: Path, prefix: str, start: MakeApp
):
    data_dir = tmp_path / "data"
    first, second = (made(kind, tmp_path / kind, data_dir=data_dir) for kind in order)
    second._ports = first._ports
    group = f"{prefix}-app"
    with ExitStack() as stack:
        stack.callback(lambda: second.kill() if second.running else None)
        stack.enter_context(first)
        servers = first.bootstrap_servers
        create(servers, f"{prefix}-words", f"{prefix}-out", partitions=4)
        apps = [start("count", prefix, servers).running() for _ in range(2)]
        feed(servers, f"{prefix}-words", lines(0))
        wait_for(servers, f"{prefix}-out", counts(1), 4)
        wait_until("the group is stable", lambda: is_stable(servers, group, 2))
        before = described(servers, group)
        first.stop()
        second.start()
        after = described(servers, group)
        assert after.group_epoch == before.group_epoch
        assert {each.member_id for each in after.members} == {each.member_id for each in before.members}
        feed(servers, f"{prefix}-words", lines(1))
        wait_for(servers, f"{prefix}-out", counts(2), 4)
        wait_until("the group is stable again", lambda: is_stable(servers, group, 2))
        assert described(servers, group).group_epoch == before.group_epoch
        for app in apps:
            app.close()
        second.stop()
    log = next(data_dir.glob("__consumer_offsets-0/*.log"))
    assert group in dump_log(log, "--offsets-decoder")
