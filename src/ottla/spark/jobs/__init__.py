"""What became of a cluster, as tables: each job takes frames of decoded records or samples and gives one table.

A job is a function `job(inputs, params) -> DataFrame` in the module that has the table's name. It reads and writes
nothing itself, never asks what time it is, and does the same with a batch and with a stream. `inputs` may hold
`records` (decoded coordinator records), `samples` (what an observer saw) and `metadata` (decoded records of the
cluster's own log); what is missing is not there. The folds below `folds` are plain Python and need no Spark.
"""
