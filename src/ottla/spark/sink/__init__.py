"""The format `ottla` as a sink: rows become records of topics, at least once or exactly once.

`options`    what users may say
`columns`    which columns a query must have, and the records in its Arrow batches
`writing`    writes the rows of a task, whatever promise there is
`exactly`    a task that writes exactly once: it prepares a transaction and leaves it open
`ending`     the driver ends the transactions of all tasks
`writers`    what Spark calls
"""
