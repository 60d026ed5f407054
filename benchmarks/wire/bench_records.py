"""Reading 1,000,000 records of 100 bytes beside aiokafka's C extension, kafka-python and Kafka's own Java classes.

    python -m benchmarks.wire.bench_records [--records 1000000] [--json PATH] [--no-java]

One call is one pass over all records, in chunks of 4 MiB of whole batches of about 16 KiB, as in fetch answers and
segments. The data is larger than the caches, so nothing remembered is measured.

- **positions**: offset, timestamp and the places of key, value and headers in numpy arrays; nothing is copied. Java's
  iteration gives views as well; aiokafka copies each value into a bytes object, so that ratio is not of like with like.
- **into Arrow**: keys and values copied into Arrow buffers. This one is like aiokafka's copies.
- **objects**: one Python object a record, by interpreted Python only; fewer records, as it is slow.

Java takes part if `java` and `mvn` are there; its jars are fetched once, as for the interop tests. It runs in a process
of its own, which is warmed up first and times its passes itself.
"""

import argparse
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from aiokafka.record._crecords import MemoryRecords as AiokafkaRecords

from benchmarks import runner
from benchmarks.runner import Case, Measurement, Settings, Size, Subject
from ottla.wire.batch import BatchBuilder, Compression, split_batches
from ottla.wire.columns import decode_columns, warm_up
from tests.interop.jars import CLIENTS_4_4, SetupError, classpath, libraries

PACKAGES = ("numba", "numpy", "pyarrow", "crc32c", "cramjam", "aiokafka", "kafka-python")
BATCH_BYTES = 16 * 1024
CHUNK_BYTES = 4 * 1024 * 1024
RECORDS = {Size.FULL: 1_000_000, Size.QUICK: 100_000, Size.SMOKE: 1_000}

Chunks = Sequence[bytes]


# --- the data ---------------------------------------------------------------------------------------------------------


def batches(record_count: int, value_bytes: int, compression: Compression) -> Iterator[bytes]:
    """Batches of records without keys; every value is another, and about a third of it is text that packs."""
    filler = b"abcdefgh" * (value_bytes // 24) + bytes(range(256)) * (value_bytes // 256 + 1)
    offset = 0
    while offset < record_count:
        builder = BatchBuilder(offset)
        while builder.size_bytes < BATCH_BYTES and offset < record_count:
            value = offset.to_bytes(8, "big") + filler[: value_bytes - 8]
            builder.append(1_750_000_000_000 + offset // 10, None, value)
            offset += 1
        yield builder.build(compression=compression)


def chunks(record_count: int, value_bytes: int = 100, compression: Compression = Compression.NONE) -> Chunks:
    made: list[bytes] = []
    gathered: list[bytes] = []
    for batch in batches(record_count, value_bytes, compression):
        gathered.append(batch)
        if sum(map(len, gathered)) >= CHUNK_BYTES:
            made.append(b"".join(gathered))
            gathered = []
    return [*made, b"".join(gathered)] if gathered else made


# --- the ways of reading; each gives the number of records ------------------------------------------------------------


def ours_positions(data: Chunks) -> int:
    return sum(len(decode_columns(chunk, check_crc=False)) for chunk in data)


def ours_positions_checked(data: Chunks) -> int:
    return sum(len(decode_columns(chunk)) for chunk in data)


def ours_arrow(data: Chunks) -> int:
    return sum(decode_columns(chunk, check_crc=False).to_arrow(headers=False).num_rows for chunk in data)


def ours_arrow_checked(data: Chunks) -> int:
    return sum(decode_columns(chunk).to_arrow(headers=False).num_rows for chunk in data)


def ours_objects(data: Chunks) -> int:
    return sum(len(batch.records()) for chunk in data for batch in split_batches(chunk))


def aiokafka(data: Chunks) -> int:
    count = 0
    for chunk in data:
        records = AiokafkaRecords(chunk)
        while (batch := records.next_batch()) is not None:
            for record in batch:
                record.value  # noqa: B018  (made at this moment)
                count += 1
    return count


def aiokafka_checked(data: Chunks) -> int:
    count = 0
    for chunk in data:
        records = AiokafkaRecords(chunk)
        while (batch := records.next_batch()) is not None:
            if not batch.validate_crc():
                raise ValueError("checksum")
            for record in batch:
                record.value  # noqa: B018
                count += 1
    return count


def kafka_python(data: Chunks) -> int:
    from kafka.record import MemoryRecords as KafkaPythonRecords

    count = 0
    for chunk in data:
        records = KafkaPythonRecords(chunk)
        while (batch := records.next_batch()) is not None:
            for record in batch:
                record.value  # noqa: B018
                count += 1
    return count


# --- Java -------------------------------------------------------------------------------------------------------------

JAVA = """
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.file.*;
import org.apache.kafka.common.record.internal.*;

/** For each line of input: one pass over the chunks of a file; prints the records, and the nanoseconds it took. */
public class Passes {
    static ByteBuffer[] chunks(String file) throws IOException {
        ByteBuffer all = ByteBuffer.wrap(Files.readAllBytes(Path.of(file)));
        ByteBuffer[] found = new ByteBuffer[all.getInt()];
        for (int i = 0; i < found.length; i++) {
            byte[] chunk = new byte[all.getInt()];
            all.get(chunk);
            found[i] = ByteBuffer.wrap(chunk);
        }
        return found;
    }

    static long pass(ByteBuffer[] chunks) {
        long count = 0;
        long bytes = 0;
        for (ByteBuffer chunk : chunks)
            for (org.apache.kafka.common.record.internal.Record record :
                    MemoryRecords.readableRecords(chunk.duplicate()).records()) {
                bytes += record.value().remaining() + (record.offset() & 1) + (record.timestamp() & 1);
                count++;
            }
        return bytes == 42 ? -1 : count;
    }

    public static void main(String[] arguments) throws IOException {
        ByteBuffer[] chunks = chunks(arguments[0]);
        for (int i = 0; i < 20; i++)
            pass(chunks);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            long start = System.nanoTime();
            long count = pass(chunks);
            System.out.println(count + " " + (System.nanoTime() - start));
        }
    }
}
"""


class Java:
    """A Java process that makes one pass whenever it is told to."""

    def __init__(self, data: Chunks, folder: Path) -> None:
        file = folder / "chunks"
        parts = [len(data).to_bytes(4, "big")]
        for chunk in data:
            parts += (len(chunk).to_bytes(4, "big"), chunk)
        file.write_bytes(b"".join(parts))
        source = folder / "Passes.java"
        source.write_text(JAVA)
        command = ["java", "-Xmx2g", "-cp", classpath(CLIENTS_4_4), str(source), str(file)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.last_seconds = 0.0

    def pass_once(self) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        count, nanoseconds = self._process.stdout.readline().split()
        self.last_seconds = int(nanoseconds) / 1e9
        return int(count)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def missing_for_java() -> str | None:
    """What is missing, after an attempt to fetch Kafka's jars."""
    try:
        libraries(CLIENTS_4_4)
    except SetupError as missing:
        return str(missing)
    return None


def java_subject(data: Chunks, stack: ExitStack) -> tuple[Java, Subject]:
    folder = Path(stack.enter_context(TemporaryDirectory()))
    java = Java(data, folder)
    stack.callback(java.close)
    return java, Subject("Java MemoryRecords", lambda _: java.pass_once(), [(data,)])


# --- the cases --------------------------------------------------------------------------------------------------------


def subject(name: str, read: Callable[[Chunks], int], data: Chunks, record_count: int) -> Subject:
    found = read(data)
    if found != record_count:
        raise AssertionError(f"{name} reads {found} records of {record_count}")
    return Subject(name, read, [(data,)])


def case(name: str, record_count: int, data: Chunks, **ways: Callable[[Chunks], int]) -> Case:
    subjects = [subject(way.replace("_", " "), read, data, record_count) for way, read in ways.items()]
    return Case(name, subjects, {"records": record_count, "bytes": sum(map(len, data))})


def cases(record_count: int) -> Iterator[Case]:
    data = chunks(record_count)
    ours = {"ottla": ours_positions, "ottla_with_checksum": ours_positions_checked}
    rivals = {"aiokafka": aiokafka, "aiokafka_with_checksum": aiokafka_checked}
    yield case("positions, 100 B", record_count, data, **ours, **rivals)
    arrow = {"ottla": ours_arrow, "ottla_with_checksum": ours_arrow_checked}
    yield case("into Arrow, 100 B", record_count, data, **arrow, **rivals)
    few = max(record_count // 20, 1)
    yield case("objects, 100 B", few, chunks(few), ottla=ours_objects, kafka_python=kafka_python)
    fewer = max(record_count // 5, 1)
    large = chunks(fewer, 1024)
    yield case("positions, 1 KiB", fewer, large, ottla=ours_positions, aiokafka=aiokafka)
    yield case("into Arrow, 1 KiB", fewer, large, ottla=ours_arrow, aiokafka=aiokafka)
    for codec in (Compression.LZ4, Compression.ZSTD):
        packed = chunks(fewer, 100, codec)
        yield case(f"into Arrow, 100 B, {codec.name.lower()}", fewer, packed, ottla=ours_arrow, aiokafka=aiokafka)


def rates(measured: Sequence[Measurement], record_count: int) -> list[str]:
    """Millions of records a second: what people ask for."""
    lines = [f"  {'M records/s':22}{'best':>10}{'median':>10}"]
    for one in measured:
        best, median = (record_count / seconds / 1e6 for seconds in (one.best, one.median))
        lines.append(f"  {one.subject:22}{best:>10.2f}{median:>10.2f}")
    return lines


def measure_with_java(one: Case, settings: Settings, stack: ExitStack) -> list[Measurement]:
    """The first case once more with Java in turn; Java's own clock counts, as talking to it costs time, too."""
    java, java_way = java_subject(one.subjects[0].arguments[0][0], stack)
    assert one.facts is not None
    assert java_way.call(None) == one.facts["records"]
    seconds: dict[str, list[float]] = {each.name: [] for each in (*one.subjects, java_way)}
    turn = deque((*one.subjects, java_way))
    for _ in range(settings.rounds):
        for each in turn:
            passed = runner.run_window(each, 1)
            seconds[each.name].append(java.last_seconds if each is java_way else passed)
        turn.rotate(-1)
    return [Measurement(one.name, name, 1, tuple(values)) for name, values in seconds.items()]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = runner.parser(__doc__)
    parser.add_argument("--json", type=Path, dest="out", help="the same as --out")
    parser.add_argument("--records", type=int, help="records of the main cases (1,000,000)")
    options = runner.read_windows(parser, arguments, records=RECORDS)
    warm_up()
    missing = "left out on demand" if options.no_java else missing_for_java()
    if missing:
        print(f"without Java: {missing}")
    with ExitStack() as stack:
        run(options, has_java=missing is None, stack=stack)
    return 0


def run(options: argparse.Namespace, *, has_java: bool, stack: ExitStack) -> None:
    settings = Settings(options.rounds, options.window)
    done: list[tuple[Case, list[Measurement]]] = []
    for one in cases(options.records):
        if options.only not in one.name:
            continue
        if has_java and one.name.startswith("positions, 100 B"):
            measured = measure_with_java(one, settings, stack)
        else:
            measured = runner.measure(one, settings)
        assert one.facts is not None
        print("\n".join([*runner.table(measured), *rates(measured, int(one.facts["records"]))]), flush=True)
        done.append((one, measured))
    runner.save("wire-records", done, options, PACKAGES)


if __name__ == "__main__":
    sys.exit(main())
