"""The format `ottla-records`: internal topics as typed tables.

================  ======================================================================================================
`types`           types of columns, for Spark and for Arrow
`states`          the names of numeric codes
`tables`          one table for each record type, made from the codec's schemas
`values`          turns decoded messages into values of columns, for each version
`decode`          turns columns of records into Arrow batches of a table, or of JSON
`latest`          the newest row of each key
`metadata_state`  the state to which the metadata log adds up
================  ======================================================================================================
"""
