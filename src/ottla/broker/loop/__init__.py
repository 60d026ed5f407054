"""The event loop and what works with it: clocks, threads, cooperative tasks, delayed operations, periodic chores."""
