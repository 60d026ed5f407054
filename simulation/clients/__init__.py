"""Simulated clients: small state machines that follow their protocol, crash and come back."""
