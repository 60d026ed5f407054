"""The pipeline: from the internal topics and the observations of a cluster to tables and a report.

==============  ======================================================================================================
`origins`       what a run reads: a cluster, or log directories
`ingest`        reads an origin and writes events to disk: small ones `in_process`, others in Spark's workers
`event_decoder` turns records of topics into events
`observations`  turns files of an observer into events
`events`        events on disk, and the frames that jobs take
`event_lookup`  topic names and configs, looked up in the events before the jobs run
`end_offsets`   the end offsets of partitions over time, from their own logs
`job_runner`    runs the jobs and writes their tables
`tables`        rows on disk, as Parquet or Delta
`session`       the Spark session: quiet and small
`batch`         `ottla pipeline run`: one run over a closed range
`stream`        the same, step by step as data arrive
`follow`        `ottla pipeline follow`: the stream, its session and its report
`archive`       the events that a stream has read
`report_files`  writes `report.html` and `report.json`
`run_directory` the directory in which a run keeps temporary files
`run_file`      `run.json`: what a run has read and written
==============  ======================================================================================================
"""
