"""The documentation as one static site: the pages of `docs/`, reference pages made of the code, and the protocol.

`make docs` runs `python -m tools.docs_site`. The site needs no server and loads nothing from elsewhere.

- `markdown` turns one page into HTML, its headings and the words to search for;
- `commands`, `settings` and `python_api` write Markdown from help texts, tables and docstrings;
- `pages` collects all pages in the order of the index, `layout` puts them into documents.
"""
