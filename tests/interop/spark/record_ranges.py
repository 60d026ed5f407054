"""Asks Spark's own Kafka connector how it cuts ranges into tasks, and writes down what it says.

    python -m tests.interop.spark.record_ranges

The answers are compared with ours in tests/unit/spark/test_ranges.py, which needs no Java.
"""

import json
import random
from pathlib import Path
from typing import Any

from ottla.spark import session
from tests.interop.jars import SPARK_KAFKA, libraries

TARGET = Path(__file__).parents[2] / "unit" / "spark" / "recorded_ranges.json"
HAND_MADE: list[tuple[int | None, int | None, list[list[int]]]] = [
    (None, None, [[0, 0, 10], [1, 5, 5], [2, 7, 3]]),
    (3, None, [[0, 0, 100]]),
    (4, None, [[0, 0, 1], [1, 0, 1], [2, 0, 97]]),
    (20, None, [[0, 0, 90_000], [1, 0, 2_500], [2, 0, 2_500], [3, 0, 2_500], [4, 0, 2_500]]),
    (None, 10, [[0, 0, 95], [1, 0, 10], [2, 0, 11]]),
    (10, 50, [[0, 0, 95], [1, 0, 10], [2, 0, 11]]),
    (2, 10, [[0, 0, 95]]),
    (7, 40, [[0, 3, 250], [1, 0, 41]]),
]
RANDOM_CASES = 60


def cases() -> list[tuple[int | None, int | None, list[list[int]]]]:
    numbers = random.Random(13)
    made = list(HAND_MADE)
    for _ in range(RANDOM_CASES):
        ranges = []
        for partition in range(numbers.randint(1, 6)):
            start = numbers.randint(0, 50)
            ranges.append([partition, start, start + numbers.choice([0, 1, 5, 100, 1_000, 3_999])])
        wanted = numbers.choice([None, 1, 3, 10, 37])
        most = numbers.choice([None, None, 250, 777])
        made.append((wanted, most, ranges))
    return made


def record() -> list[dict[str, Any]]:
    jars = ",".join(str(path) for path in libraries(SPARK_KAFKA).glob("*.jar"))
    spark = session("local[1]", conf={"spark.jars": jars, "spark.ui.enabled": "false"})
    try:
        return [_recorded(spark._jvm, *each) for each in cases()]
    finally:
        spark.stop()


def _recorded(jvm: Any, wanted: int | None, most: int | None, ranges: list[list[int]]) -> dict[str, Any]:
    kafka = jvm.org.apache.spark.sql.kafka010
    options = jvm.java.util.HashMap()
    if wanted is not None:
        options.put("minPartitions", str(wanted))
    if most is not None:
        options.put("maxRecordsPerPartition", str(most))
    calculator = kafka.KafkaOffsetRangeCalculator.apply(jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap(options))
    given = jvm.java.util.ArrayList()
    for partition, start, until in ranges:
        at = jvm.org.apache.kafka.common.TopicPartition("t", partition)
        given.add(kafka.KafkaOffsetRange(at, start, until, jvm.scala.Option.empty()))
    converters = jvm.scala.jdk.javaapi.CollectionConverters
    nowhere = converters.asScala(jvm.java.util.ArrayList()).toSeq()
    found = converters.asJava(calculator.getRanges(converters.asScala(given).toSeq(), nowhere))
    parts = sorted([each.partition(), each.fromOffset(), each.untilOffset()] for each in found)
    return {"min": wanted, "max": most, "ranges": ranges, "parts": parts}


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(each) for each in record())
    TARGET.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
