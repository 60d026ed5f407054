"""What is wrong with a cluster: facts in, findings out.

Facts (`ottla.health.facts`) are told to an `Engine` one by one with their times. It keeps what the rules need to
remember, within bounds, and answers with what became of findings: opened, changed, resolved. The same rules in the
same words serve the observer, the console, the report and the command line.
"""

from ottla.health.coverage import Unseen
from ottla.health.engine import Engine
from ottla.health.finding import Change, Finding, Next, Severity, State, Subject, Tier, What
from ottla.health.rule import RULES, Rule, ThresholdError, parse_thresholds
from ottla.health.world import Bounds

__all__ = [
    "RULES",
    "Bounds",
    "Change",
    "Engine",
    "Finding",
    "Next",
    "Rule",
    "Severity",
    "State",
    "Subject",
    "ThresholdError",
    "Tier",
    "Unseen",
    "What",
    "parse_thresholds",
]
