"""Limits of share groups, from what was said of settings."""

from ottla.spark.jobs.share_configs import ConfigValues, share_limits


def told(at: int, resource: str, name: str, **values: str | None) -> ConfigValues:
    return ConfigValues("c", at, resource, name, {key.replace("_", "."): value for key, value in values.items()})


def test_a_group_s_own_settings_come_before_the_brokers_and_the_defaults():
    found = share_limits(
        [
            told(1, "broker", "1", group_share_delivery_count_limit="3", group_share_record_lock_duration_ms="5000"),
            told(2, "group", "risk", share_delivery_count_limit="7"),
            told(3, "topic", "orders", retention_ms="1"),
        ]
    )
    assert found == {("c", ""): (3, 5_000), ("c", "risk"): (7, 5_000)}


def test_the_newest_word_counts_and_nonsense_does_not():
    found = share_limits(
        [
            told(2, "group", "risk", share_delivery_count_limit="9"),
            told(1, "group", "risk", share_delivery_count_limit="7"),
            told(3, "group", "risk", share_delivery_count_limit=None, share_record_lock_duration_ms="soon"),
        ]
    )
    assert found == {("c", "risk"): (9, 30_000)}
