"""Every decision of a node, without input or output: time, randomness, files and peers come in as arguments."""
