"""Benchmarks: each beside its rivals, on one machine, in one run."""
