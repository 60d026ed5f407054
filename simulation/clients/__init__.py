"""Simulated clients: each a small state machine that keeps to its protocol, crashes, and comes back."""
