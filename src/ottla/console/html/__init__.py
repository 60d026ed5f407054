"""HTML that all pages of the console share: the frame around a page, tables, findings, small plots."""
