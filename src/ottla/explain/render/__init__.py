"""Ways to print a page. Each takes a Page and gives text; none knows more than the page."""
