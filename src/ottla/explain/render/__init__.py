"""Renderers of pages. Each takes a Page and returns text, and uses nothing but the page."""
