"""The web console: shows any Kafka cluster, and changes nothing.

    from ottla.console import ConsoleOptions, make_app

`state` holds what was last seen of a cluster and `watcher` sees it: an observer with the rights of one principal.
`pages` has a module for each page: it loads the page's data, and turns them into HTML. `app` puts pages, their JSON
twins, events and access together as an ASGI application, and `server` runs it.
"""
