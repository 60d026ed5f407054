"""Benchmarks of the metadata quorum."""
