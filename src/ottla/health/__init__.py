"""What is wrong with a cluster: facts in, findings out.

Facts (`ottla.health.facts`) are told to an `Engine` one by one with their times. It keeps what the rules need to
remember, within bounds, and answers with what became of findings: opened, changed, resolved. The same rules in the
same words serve the observer, the console, the report and the command line.
"""

from ottla.health.coverage import Unseen
from ottla.health.engine import Engine
from ottla.health.finding import Change, ChangeType, Finding, NextStep, Severity, State, Subject, Tier
from ottla.health.history import Bounds
from ottla.health.rule import RULES, Rule, ThresholdError, parse_thresholds

__all__ = [
    "RULES",
    "Bounds",
    "Change",
    "ChangeType",
    "Engine",
    "Finding",
    "NextStep",
    "Rule",
    "Severity",
    "State",
    "Subject",
    "ThresholdError",
    "Tier",
    "Unseen",
    "parse_thresholds",
]
