"""What all tests share: how hypothesis searches, how slow the controller is, and what is logged."""

import logging
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import settings

# A red run means that something changed, so the usual search is the same each time; the machine may be busy, so no
# example has a deadline. `pytest --hypothesis-profile=thorough` looks further, at random.
settings.register_profile("usual", deadline=None, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=2_000, print_blob=True)
settings.load_profile("usual")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--controller-delay",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="let every request for the controller of a node wait: no test may depend on a fast one",
    )
    parser.addoption(
        "--cluster-security",
        default="plaintext",
        metavar="PROTOCOL",
        help="how the nodes of clusters under test speak to each other: ssl, sasl_plaintext or sasl_ssl",
    )


def pytest_configure(config: pytest.Config) -> None:
    security = config.getoption("--cluster-security")
    if security != "plaintext":
        import_module("ottla.testing.clusters.cluster").DEFAULT_SECURITY = security
    delay_s = config.getoption("--controller-delay")
    if not delay_s:
        return
    from ottla.broker.controller.channel import ControllerChannel

    submit: Any = ControllerChannel._submit

    def submit_later(channel: Any, attempt: Any) -> None:
        channel._loop.call_later(delay_s, submit, channel, attempt)

    ControllerChannel._submit = submit_later  # type: ignore[method-assign]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--controller-delay"):
        left_out = [item for item in items if item.get_closest_marker("prompt")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(autouse=True)
def _same_logging() -> Iterator[None]:
    """Undo what a test did to logging, by `ottla serve` for instance: those after it log as if it had not run."""
    before = _loggers_in_use()
    yield
    for logger in _loggers_in_use() | before:
        level, handlers = before.get(logger, (logging.NOTSET, []))
        logger.setLevel(level)
        logger.handlers[:] = handlers


def _loggers_in_use() -> dict[logging.Logger, tuple[int, list[logging.Handler]]]:
    loggers = [logger for name, logger in logging.root.manager.loggerDict.items() if name.partition(".")[0] == "ottla"]
    return {
        logger: (logger.level, list(logger.handlers))
        for logger in loggers
        if isinstance(logger, logging.Logger) and (logger.level or logger.handlers)
    }
