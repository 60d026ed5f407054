"""Folds over the histories of groups."""
