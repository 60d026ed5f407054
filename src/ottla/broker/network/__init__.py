"""From sockets to handlers and back: listeners, connections, frames, dispatch, quotas."""
