"""The settings of a node: what its files and command line say, and what was set while it runs."""
