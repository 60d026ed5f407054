"""The workloads of the story, each a process of its own: `python -m ottla.cli.demo.workloads NAME ORDERS`.

`ORDERS` is a JSON object. A workload writes what it does into its journal, obeys the lines that it is sent on standard
input, and ends in order when that is closed: also when the story itself was killed.
"""
