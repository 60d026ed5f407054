package interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordTooLargeException;

/** Reads partitions that it was assigned, without a group: positions, times, long polls, large records, many partitions. */
public final class AssignedConsumer {
    private static final int PARTITIONS = 50;
    private static final int MEGABYTE = 1 << 20;

    public static void main(String[] arguments) {
        Program.main(arguments, AssignedConsumer::run);
    }

    private static void run(Program program) throws Exception {
        positions(program);
        longPoll(program);
        largeRecords(program);
        manyPartitions(program);
    }

    private static KafkaProducer<String, String> producer(Program program, Object... settings) {
        return new KafkaProducer<>(program.settings(settings));
    }

    private static KafkaConsumer<String, String> consumer(Program program, Object... settings) {
        return new KafkaConsumer<>(program.settings(settings));
    }

    /** With its leaders at work: Apache Kafka may announce a topic a little earlier, and lose the order of a producer. */
    private static void createTopic(Program program, String topic, int partitions) throws Exception {
        program.createTopics(partitions, topic);
        List<TopicPartition> all = new ArrayList<>();
        for (int number = 0; number < partitions; number++) {
            all.add(new TopicPartition(topic, number));
        }
        try (var consumer = consumer(program)) {
            Program.check(consumer.endOffsets(all).size() == partitions, "all partitions have a leader");
        }
    }

    private static void positions(Program program) throws Exception {
        String topic = program.named("positions");
        createTopic(program, topic, 1);
        var partition = new TopicPartition(topic, 0);
        try (var producer = producer(program)) {
            for (int number = 0; number < 10; number++) {
                var sent = producer.send(new ProducerRecord<>(topic, 0, 1_000L * number, null, "value-" + number)).get();
                Program.check(sent.offset() == number, "offsets count up");
            }
        }
        try (var consumer = consumer(program, "auto.offset.reset", "none", "isolation.level", "read_committed")) {
            consumer.assign(List.of(partition));
            Program.check(consumer.beginningOffsets(List.of(partition)).get(partition) == 0, "begins at 0");
            Program.check(consumer.endOffsets(List.of(partition)).get(partition) == 10, "ends at 10");
            var found = consumer.offsetsForTimes(Map.of(partition, 2_500L)).get(partition);
            Program.check(found.offset() == 3 && found.timestamp() == 3_000L, "the first that is not older");
            Program.check(consumer.offsetsForTimes(Map.of(partition, 99_999L)).get(partition) == null, "none is that new");
            Program.check(consumer.partitionsFor(topic).size() == 1, "one partition");
            Program.check(consumer.listTopics().containsKey(topic), "the topic is listed");
            consumer.seek(partition, 7);
            Program.check(values(consumer, 3).equals(List.of("value-7", "value-8", "value-9")), "reads from 7 on");
            Program.check(consumer.position(partition) == 10, "stands at the end");
            consumer.seekToEnd(List.of(partition));
            Program.check(consumer.position(partition) == 10, "seeks to the end");
            consumer.seek(partition, 99);
            outOfRange(consumer);
        }
    }

    private static void outOfRange(KafkaConsumer<String, String> consumer) throws Exception {
        Program.until("an offset out of range", () -> {
            try {
                consumer.poll(Program.POLL);
                return false;
            } catch (OffsetOutOfRangeException expected) {
                return true;
            }
        });
    }

    private static void longPoll(Program program) throws Exception {
        String topic = program.named("long-poll");
        createTopic(program, topic, 1);
        var partition = new TopicPartition(topic, 0);
        try (var consumer = consumer(program, "fetch.max.wait.ms", 20_000); var producer = producer(program)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            Program.check(consumer.poll(Duration.ofMillis(500)).isEmpty(), "nothing there yet");
            long began = System.nanoTime();
            producer.send(new ProducerRecord<>(topic, "woken")).get();
            Program.check(values(consumer, 1).equals(List.of("woken")), "the waiting fetch is answered");
            Program.check(System.nanoTime() - began < 10_000_000_000L, "long before its time is over");
        }
    }

    private static void largeRecords(Program program) throws Exception {
        String topic = program.named("large");
        createTopic(program, topic, 1);
        var partition = new TopicPartition(topic, 0);
        String large = "x".repeat(MEGABYTE - 1_000);
        try (var producer = producer(program, "max.request.size", 8 * MEGABYTE)) {
            producer.send(new ProducerRecord<>(topic, "small")).get();
            producer.send(new ProducerRecord<>(topic, large)).get();
            try {
                producer.send(new ProducerRecord<>(topic, large + large)).get();
                Program.check(false, "too large a record was taken");
            } catch (java.util.concurrent.ExecutionException refused) {
                Program.check(refused.getCause() instanceof RecordTooLargeException, "refused: " + refused.getCause());
            }
        }
        try (var consumer = consumer(program, "max.partition.fetch.bytes", 100, "fetch.max.bytes", 100)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            Program.check(values(consumer, 2).equals(List.of("small", large)), "larger than every limit, and read");
        }
    }

    private static void manyPartitions(Program program) throws Exception {
        String topic = program.named("many");
        createTopic(program, topic, PARTITIONS);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        Map<Integer, List<String>> expected = new HashMap<>();
        try (var producer = producer(program, "linger.ms", 5, "compression.type", "lz4")) {
            for (int number = 0; number < PARTITIONS * 20; number++) {
                int partition = number % PARTITIONS;
                sent.add(producer.send(new ProducerRecord<>(topic, partition, "key", "value-" + number)));
                expected.computeIfAbsent(partition, unused -> new ArrayList<>()).add("value-" + number);
            }
            for (var one : sent) {
                one.get();
            }
        }
        Set<TopicPartition> partitions = new HashSet<>();
        expected.keySet().forEach(number -> partitions.add(new TopicPartition(topic, number)));
        Map<Integer, List<String>> read = new HashMap<>();
        try (var consumer = consumer(program, "max.partition.fetch.bytes", 200)) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Program.until("all records", () -> {
                consumer.poll(Program.POLL).forEach(
                        record -> read.computeIfAbsent(record.partition(), unused -> new ArrayList<>()).add(record.value()));
                return read.values().stream().mapToInt(List::size).sum() >= PARTITIONS * 20;
            });
        }
        Program.check(read.equals(expected), "each partition has its own records in order");
    }

    private static List<String> values(KafkaConsumer<String, String> consumer, int count) throws Exception {
        List<String> read = new ArrayList<>();
        Program.until(count + " records", () -> {
            consumer.poll(Program.POLL).forEach(record -> read.add(record.value()));
            return read.size() >= count;
        });
        return read;
    }
}
