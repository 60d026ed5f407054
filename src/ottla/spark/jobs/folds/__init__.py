"""Folds over the history of a group: plain Python, one group at a time, the same for batches and for streams.

==============  ======================================================================================================
`rows`          the output: rows of group_timeline, rebalances, stability and task_movement
`state`         the state of a fold, which is kept from one part of a group's history to the next
`tracker`       takes the steps of a group's history and makes rows
`moves`         what moved from one converged assignment to the next
`tasks`         the same for the tasks of streams groups, with standbys and warm-ups
`windows`       counts by the hour, and the alarm of epochs that climb for no reason
`records`       coordinator records as steps; `classic` has those of classic groups
`samples`       samples of an observer as steps
`fold`          the fold itself: from state and ordered rows to state and rows
`facts`         facts for the health rules from a group's records
==============  ======================================================================================================
"""
