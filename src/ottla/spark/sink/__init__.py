"""The format `ottla` as a sink: rows become records of topics, at least once or exactly once.

`options`          the options of the format
`columns`          the columns that a query must have, and the rows in its Arrow batches
`row_writer`       writes the rows of a task
`digest`           tells the rows of a task from others
`exactly_once`     a task that writes exactly once: it prepares a transaction and leaves it open
`transaction_end`  the driver ends the transactions of all tasks
`writers`          the interface to Spark
"""
