"""Pages about Kafka's protocol: what each message, record type and error is for, and what its bytes look like.

    from ottla import explain

    for ref in explain.find(["ShareFetch", "2"]):       # what `ottla explain ShareFetch 2` means
        page = explain.build(ref)                        # the page as data: ottla.explain.page
        text = explain.render.markdown.render(page)      # or json, html, terminal

`page` says what a page holds, `assemble` puts one together from `conversation`, `diagram`, `schema_text`, `example` and
`versions`, and `render` prints it. `lookup` finds pages by what a person types.
"""

from ottla.explain.assemble import build, default_version, error_page, message_page
from ottla.explain.lookup import NotFound, all_refs, catalogue, find, find_error
from ottla.explain.page import ErrorPage, MessagePage, Page, PageRef

__all__ = [
    "ErrorPage",
    "MessagePage",
    "NotFound",
    "Page",
    "PageRef",
    "all_refs",
    "build",
    "catalogue",
    "default_version",
    "error_page",
    "find",
    "find_error",
    "message_page",
]
