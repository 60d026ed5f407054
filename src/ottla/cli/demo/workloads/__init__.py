"""The workloads of the demo, each in a process of its own: `python -m ottla.cli.demo.workloads NAME ORDERS`.

`ORDERS` is a JSON object. A workload writes what it does into its journal, obeys commands on its standard input, one
per line, and ends when that is closed, which also happens when the demo is killed.
"""
