"""Internal topics as typed tables: the format `ottla-records`.

==============  ======================================================================================================
`types`         columns in the words of Spark and of Arrow
`states`        numbers that stand for something, and their names
`tables`        one table for each record type, made from the schemas that the codec reads by
`values`        decoded messages to the values of columns, version by version
`decode`        columns of records to Arrow batches of a table, or of JSON
`latest`        the newest row of each key
==============  ======================================================================================================
"""
