"""What runs on the event loop or beside it: clocks, threads, tasks in slices, requests that wait, chores."""
