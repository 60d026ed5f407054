"""The jobs: each takes frames of decoded records or samples and returns one table.

A job is a function `job(inputs, params) -> DataFrame` in the module with the table's name. It reads and writes nothing
itself, never reads a clock, and treats batches and streams alike. `inputs` may hold `records` (decoded coordinator
records), `samples` (of an observer) and `metadata` (decoded records of the metadata log). The folds in `folds` are
plain Python and need no Spark.
"""
