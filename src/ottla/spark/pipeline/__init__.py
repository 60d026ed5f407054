"""The pipeline: from the internal topics and the observations of a cluster to tables and a report.

==============  ======================================================================================================
`origins`       where the data lie: a cluster, or log directories; what of it can be read
`decoding`      records of topics to events
`observations`  files of an observer to events
`events`        events on disk, and the frames that jobs take
`ends`          where partitions ended, and when, from their own logs
`tables`        rows on disk, as Parquet or Delta
`session`       Spark for it, quiet and small
`batch`         one run over a closed range
`stream`        the same, going on
`run_file`      what a run was: `run.json`
==============  ======================================================================================================
"""
