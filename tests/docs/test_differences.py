"""The list of differences is read by tests and by people: it must be whole, and name settings that exist."""

import re

from ottla.broker.config.node_config import OWN_DEFAULTS, NodeConfig
from ottla.core.metadata.config_defs import broker_defs
from tests.docs.differences import COLUMNS, rows


def settings() -> dict[str, str]:
    """Every setting that the last column names, with its value."""
    found = [re.fullmatch(r"`([a-z.]+)=(.*)`", row[COLUMNS[-1]]) for row in rows()]
    return {match[1]: match[2] for match in found if match}


def test_every_line_is_whole_and_has_a_name_of_its_own() -> None:
    names = [row["id"] for row in rows()]
    assert len(names) > 20
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)
    assert all(cell for row in rows() for cell in row.values())
    assert all(row[COLUMNS[-1]] == "-" or row[COLUMNS[-1]].startswith("`") for row in rows())


def test_settings_exist_and_take_the_value() -> None:
    for name, value in settings().items():
        assert broker_defs()[name].parse(value) is not None


def test_every_default_of_our_own_is_listed() -> None:
    named = settings()
    assert set(OWN_DEFAULTS) <= set(named)
    different = {name for name in OWN_DEFAULTS if OWN_DEFAULTS[name] != broker_defs()[name].default}
    assert different <= set(named)
    # Where Kafka has a default, the line must give exactly that one.
    assert all(named[name] == broker_defs()[name].default for name in OWN_DEFAULTS if broker_defs()[name].default)


def test_all_of_them_together_make_a_configuration() -> None:
    config = NodeConfig(settings())
    assert config["ottla.validate.records"] is True
    assert {listener.host for listener in config.listeners} == {""}
