"""The page of the metadata log: what is known of it, and the command that reads it where it is."""

from __future__ import annotations

from ottla.console.pages import metadata_log
from ottla.health.facts import LogDir, Quorum, Replica
from tests.unit.console.seen import context_of, loaded, shown, watcher_of

QUORUM = Quorum(leader=2, leader_epoch=5, high_watermark=1_234_567, replicas=(Replica(id=2, log_end=1_234_570),))


def test_it_names_the_directories_of_the_leader():
    context = context_of(watcher_of(QUORUM, LogDir(node=1, path="/one"), LogDir(node=2, path="/var/my logs")))
    data = loaded(metadata_log.PAGES[0], context).data
    assert (data.leader, data.epoch, data.end, data.hw) == (2, 5, 1_234_570, 1_234_567)
    assert data.commands == ["ottla dump '/var/my logs/__cluster_metadata-0'"]
    html = shown(metadata_log.PAGES[1], context)
    assert "no broker serves them to clients" in html
    assert 'href="/quorum"' in html
    assert "/var/my logs/__cluster_metadata-0" in html


def test_without_facts_it_names_a_directory_that_must_be_filled_in():
    context = context_of(watcher_of())
    data = loaded(metadata_log.PAGES[0], context).data
    assert (data.leader, data.commands) == (None, ["ottla dump LOG_DIR/__cluster_metadata-0"])
    assert "–" in shown(metadata_log.PAGES[0], context)
