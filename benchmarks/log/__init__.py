"""What the log costs, beside plain files."""
