"""Tools for tests: of ottla itself and of what uses it."""
