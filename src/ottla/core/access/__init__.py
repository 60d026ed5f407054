"""The core: who may do what."""
