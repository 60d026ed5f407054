"""What is kept of topics, and when it is forgotten."""

from __future__ import annotations

from ottla.core.groups.topic_sets import SETS_MAX, TopicSets
from simulation.topics import VirtualTopics


def test_a_set_is_what_its_existing_topics_come_to():
    topics, sets = VirtualTopics(), TopicSets()
    topics.put("t", 3, ())
    names = frozenset(("t", "nowhere"))
    found = sets.existing(names, topics)
    topic = topics.by_name("t")
    assert topic is not None
    assert found == (frozenset((topic.topic_id,)), {topic.topic_id: 3})
    assert sets.metadata_hash(names, topics) == sets.metadata_hash(frozenset(("t",)), topics) != 0
    assert sets.metadata_hash(frozenset(("nowhere",)), topics) == 0


def test_what_is_known_is_not_asked_for_again_until_topics_change():
    topics, sets = VirtualTopics(), TopicSets()
    topics.put("t", 1, ())
    names = frozenset(("t",))
    before = sets.metadata_hash(names, topics), sets.existing(names, topics)
    topics.put("t", 2, ())
    assert (sets.metadata_hash(names, topics), sets.existing(names, topics)) == before
    sets.forget(["t"])
    after = sets.metadata_hash(names, topics), sets.existing(names, topics)
    assert after[0] != before[0]
    assert list(after[1].partition_counts.values()) == [2]


def test_what_is_kept_is_bounded():
    topics, sets = VirtualTopics(), TopicSets()
    for number in range(3 * SETS_MAX):
        sets.existing(frozenset((str(number),)), topics)
        sets.metadata_hash(frozenset((str(number),)), topics)
    assert len(sets._existing) <= SETS_MAX
    assert len(sets._hash_of_set) <= SETS_MAX
