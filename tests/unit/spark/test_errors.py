"""The sentence behind what Spark raises."""

import pickle
from typing import Any

import pytest

from ottla.spark.errors import OttlaSparkError, explain_error

TRACEBACK = """[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source: Traceback (most recent call last):
  File "source.py", line 5, in reader
    raise OttlaSparkError(text)
ottla.spark.errors.OttlaSparkError: option minPartitions: '0' is not a positive integer
 SQLSTATE: 38000"""


class JavaError:
    """As py4j shows one."""

    def __init__(self, text: str, cause: "JavaError | None" = None) -> None:
        self.text, self.cause = text, cause

    def toString(self) -> str:
        return self.text

    def getCause(self) -> "JavaError | None":
        return self.cause


def failed(text: str, origin: Any = None) -> Exception:
    error = RuntimeError(text)
    error._origin = origin  # type: ignore[attr-defined]
    return error


def test_our_own_sentence_is_found_in_a_traceback():
    assert explain_error(failed(TRACEBACK)) == "option minPartitions: '0' is not a positive integer"


def test_it_is_found_behind_causes_in_java():
    origin = JavaError("Writing job failed.", JavaError("Job aborted", JavaError(TRACEBACK)))
    assert explain_error(failed("Writing job failed.", origin)) == "option minPartitions: '0' is not a positive integer"


def test_it_is_found_behind_causes_in_python():
    outer = RuntimeError("the query failed")
    outer.__cause__ = failed(TRACEBACK)
    assert explain_error(outer).startswith("option minPartitions")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Traceback\n  File x\nValueError: no\n\n", "ValueError: no"),
        (
            "Traceback\nModuleNotFoundError: No module named 'ottla'\n at org.apache",
            "ModuleNotFoundError: No module named 'ottla'",
        ),
        ("[TABLE_NOT_FOUND] there is no table\n at line 1", "[TABLE_NOT_FOUND] there is no table"),
        ("", "RuntimeError"),
    ],
)
def test_without_ours_the_last_line_of_python_or_the_first_of_spark(text: str, expected: str):
    assert explain_error(failed(text)) == expected


def test_our_own_error_speaks_for_itself():
    assert explain_error(OttlaSparkError("data lost")) == "data lost"
    assert str(pickle.loads(pickle.dumps(OttlaSparkError("data lost")))) == "data lost"


def test_a_cause_that_bites_its_tail_ends():
    origin = JavaError("round")
    origin.cause = origin
    assert explain_error(failed("and round", origin)) == "and round"
