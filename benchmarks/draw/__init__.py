"""Benchmarks of drawings."""
