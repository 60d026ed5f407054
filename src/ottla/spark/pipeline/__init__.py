"""The pipeline: from the internal topics and the observations of a cluster to tables and a report.

==============  ======================================================================================================
`origins`       what a run reads: a cluster, or log directories
`ingest`        reads an origin and writes events to disk: small ones `in_process`, others in Spark's workers
`event_decoder` turns records of topics into events
`observations`  turns files of an observer into events
`events`        events on disk, and the frames that jobs take
`event_lookup`  what is looked up in the events before the jobs run: names of topics, configs, types of groups
`end_offsets`   the end offsets of partitions over time, from their own logs
`job_runner`    runs the jobs and writes their tables
`tables`        rows on disk, as Parquet or Delta
`session`       the Spark session: quiet and small
`batch`         `ottla pipeline run`: one run over a closed range
`follow`        `ottla pipeline follow`: step by step as data arrive
`archive`       the events that `follow` has read, in numbered steps
`step_source`   the steps as a stream of Spark
`table_stream`  the tables that this stream keeps up to date, and its checkpoint
`table_changes` applies changes to tables, one file for each hour
`rule_stream`   the health rules, step by step
`recent_lag`    the table of lag, hour by hour
`report_files`  writes `report.html` and `report.json`
`run_directory` the directory in which a run keeps temporary files
`run_file`      `run.json`: what a run has read and written
==============  ======================================================================================================
"""
