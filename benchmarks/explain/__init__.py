"""Benchmarks of explain: captures, guesses."""
