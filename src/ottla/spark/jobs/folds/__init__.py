"""Folds over the history of a group: plain Python, one group at a time, the same for batches and for streams.

==============  ======================================================================================================
`rows`          what comes out: rows of group_timeline, rebalances, stability and task_movement
`state`         what is kept of a group from one stretch of its history to the next
`following`     the steps of a group's life, and what follows from each
`moves`         what moved from one assignment that had arrived everywhere to the next
`tasks`         the same for the tasks of streams groups, with standbys and warm-ups
`windows`       counts by the hour, and the alarm of epochs that climb for no reason
`records`       coordinator records as steps; `classic` those of classic groups
`samples`       what an observer saw, as steps
`folding`       the fold itself: state and ordered rows to state and rows
`facts`         a followed group as the health rules take it
==============  ======================================================================================================
"""
