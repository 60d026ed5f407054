package interop;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * Reads one topic and writes another, record by record to the same partition, in transactions that hold the offsets
 * too; some are aborted on purpose. It runs until it is killed, and whoever starts it again goes on where it stopped.
 *
 * BOOTSTRAP FROM TO GROUP TRANSACTIONAL_ID SEED [TIMEOUT_MS]: the time-out is that of its sessions and transactions;
 * without it they are short, so that others soon take over from one that was killed.
 */
public final class TransactionalFlow {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final double ABORTED = 0.1;
    private static final int RECORDS_MAX = 500;

    private final Map<String, Object> settings;
    private final String from;
    private final String to;
    private final Random random;

    private TransactionalFlow(String[] arguments) {
        from = arguments[1];
        to = arguments[2];
        random = new Random(Long.parseLong(arguments[5]));
        settings = new HashMap<>(Map.of(
                "bootstrap.servers", arguments[0],
                "group.id", arguments[3],
                "transactional.id", arguments[4],
                "client.id", arguments[4],
                "isolation.level", "read_committed",
                "auto.offset.reset", "earliest",
                "enable.auto.commit", "false",
                "max.poll.records", RECORDS_MAX));
        boolean isPatient = arguments.length > 6;
        settings.putAll(Map.of(
                "session.timeout.ms", isPatient ? arguments[6] : "1500",
                "heartbeat.interval.ms", "400",
                "reconnect.backoff.max.ms", "200",
                "key.serializer", "org.apache.kafka.common.serialization.StringSerializer",
                "value.serializer", "org.apache.kafka.common.serialization.StringSerializer",
                "key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer",
                "value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer",
                "transaction.timeout.ms", isPatient ? arguments[6] : "10000"));
    }

    public static void main(String[] arguments) {
        var flow = new TransactionalFlow(arguments);
        while (true) {
            try {
                flow.run();
            } catch (KafkaException failure) {
                System.err.println("begins anew after " + failure);
            }
        }
    }

    /** Until something happens that a producer or consumer cannot go on after. */
    private void run() {
        try (var producer = new KafkaProducer<String, String>(settings);
                var consumer = new KafkaConsumer<String, String>(settings)) {
            producer.initTransactions();
            consumer.subscribe(List.of(from));
            while (true) {
                ConsumerRecords<String, String> records = consumer.poll(POLL);
                if (!records.isEmpty()) {
                    pass(producer, consumer, records);
                }
            }
        }
    }

    private void pass(
            KafkaProducer<String, String> producer,
            KafkaConsumer<String, String> consumer,
            ConsumerRecords<String, String> records) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        producer.beginTransaction();
        for (var record : records) {
            producer.send(new ProducerRecord<>(to, record.partition(), record.key(), record.value()));
            offsets.put(new TopicPartition(from, record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        if (random.nextDouble() >= ABORTED) {
            producer.commitTransaction();
            return;
        }
        producer.abortTransaction();
        for (TopicPartition partition : offsets.keySet()) {
            consumer.seek(partition, records.records(partition).get(0).offset());
        }
    }
}
