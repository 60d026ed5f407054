"""The edge of a node: sockets, dispatch, handlers, and what joins the core to the loop, the disk and the clock."""
