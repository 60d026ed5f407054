package interop;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeader;

/** Writes records with every compression and acks, and reads them back by assignment, without a group. */
public final class ProduceFetch {
    private static final int RECORDS = 20;

    public static void main(String[] arguments) {
        Program.main(arguments, ProduceFetch::run);
    }

    private static void run(Program program) throws Exception {
        String topic = program.named("orders");
        program.createTopics(1, topic);
        List<String> sent = new ArrayList<>();
        for (String compression : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            sent.addAll(produce(program, topic, compression, "all"));
        }
        sent.addAll(produce(program, topic, "none", "1"));
        sent.addAll(produce(program, topic, "none", "0"));
        Program.check(fetch(program, topic, sent.size()).equals(sent), "read what was written, in order");
    }

    private static List<String> produce(Program program, String topic, String compression, String acks) {
        List<String> values = new ArrayList<>();
        var settings = program.settings(
                "client.id", "interop-producer", "compression.type", compression, "acks", acks, "linger.ms", 20,
                "enable.idempotence", acks.equals("all"));
        try (var producer = new KafkaProducer<String, String>(settings)) {
            for (int number = 0; number < RECORDS; number++) {
                String value = compression + " " + acks + " " + number;
                var record = new ProducerRecord<>(topic, "key-" + number % 3, value);
                record.headers().add(new RecordHeader("number", Integer.toString(number).getBytes()));
                producer.send(record);
                values.add(value);
            }
            producer.flush();
        }
        return values;
    }

    private static List<String> fetch(Program program, String topic, int count) throws Exception {
        List<String> read = new ArrayList<>();
        try (var consumer = new KafkaConsumer<String, String>(program.settings("client.id", "interop-fetcher"))) {
            var partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            Program.until(count + " records", () -> {
                consumer.poll(Program.POLL).forEach(record -> read.add(record.value()));
                return read.size() >= count;
            });
        }
        return read;
    }
}
