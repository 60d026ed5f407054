"""The floor: a Python source that gives ready-made Arrow batches. No source in Python can be quicker than this one.

The values are those of the topics: what Parquet makes of them, and how long it takes, depends on that.
"""

from collections.abc import Iterator
from itertools import chain, cycle, islice

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from benchmarks.spark.filling import values_of_batches
from ottla.spark.schemas import RecordColumns, arrow_schema, ddl

TYPES = RecordColumns().types()
BATCH_ROWS = 50_000
TASKS = 4


class Floor(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ready-made"

    def schema(self) -> str:
        return ddl(TYPES)

    def reader(self, schema: StructType) -> DataSourceReader:
        return FloorReader(int(self.options["records"]), int(self.options["value_bytes"]))


class FloorReader(DataSourceReader):
    def __init__(self, records: int, value_bytes: int) -> None:
        self.records, self.value_bytes = records, value_bytes

    def partitions(self) -> list[InputPartition]:
        share = self.records // TASKS
        counts = [share] * (TASKS - 1) + [self.records - share * (TASKS - 1)]
        return [InputPartition(each) for each in enumerate(counts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        number, count = partition.value
        whole = _batch(number, self.value_bytes)
        while count > 0:
            yield whole.slice(0, min(count, BATCH_ROWS))
            count -= BATCH_ROWS


def _batch(partition: int, value_bytes: int) -> pa.RecordBatch:
    columns = {
        "key": [b"%d" % number for number in range(BATCH_ROWS)],
        "value": list(islice(cycle(chain.from_iterable(values_of_batches(value_bytes))), BATCH_ROWS)),
        "topic": ["t"] * BATCH_ROWS,
        "partition": [partition] * BATCH_ROWS,
        "offset": list(range(BATCH_ROWS)),
        "timestamp": [0] * BATCH_ROWS,
        "timestampType": [0] * BATCH_ROWS,
    }
    return pa.RecordBatch.from_pydict(columns, schema=arrow_schema(TYPES))
