"""The report of a run: facts from its tables (`facts_of`), and one HTML file made from the facts (`page`).

Both are pure: no Spark, no clock, no files. The facts are the content of `report.json`; the page shows the same.
Without pyarrow there are no tables, and `facts_of_findings` makes facts from findings alone.
"""

from ottla.spark.report.facts import facts_of, facts_of_findings
from ottla.spark.report.page import page

__all__ = ["facts_of", "facts_of_findings", "page"]
