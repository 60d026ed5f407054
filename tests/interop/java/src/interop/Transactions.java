package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** One transaction committed with a group's offsets, one aborted; only the first is read back. */
public final class Transactions {
    public static void main(String[] arguments) {
        Program.main(arguments, Transactions::run);
    }

    private static void run(Program program) throws Exception {
        String topic = program.named("payments");
        String group = program.named("payers");
        program.createTopics(1, topic);
        var partition = new TopicPartition(topic, 0);
        var settings = program.settings(
                "client.id", "interop-transactor", "transactional.id", program.named("transactor"));
        var reading = program.settings(
                "client.id", "interop-committed", "group.id", group, "isolation.level", "read_committed",
                "auto.offset.reset", "earliest");
        try (var producer = new KafkaProducer<String, String>(settings);
                var consumer = new KafkaConsumer<String, String>(reading)) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, "aborted"));
            producer.flush();
            producer.abortTransaction();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, "committed"));
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(7)), consumer.groupMetadata());
            producer.commitTransaction();
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            Program.check(read(consumer).equals(List.of("committed")), "only committed records are read");
        }
    }

    private static List<String> read(KafkaConsumer<String, String> consumer) throws Exception {
        List<String> values = new ArrayList<>();
        Program.until("the committed record", () -> {
            consumer.poll(Program.POLL).forEach(record -> values.add(record.value()));
            return !values.isEmpty();
        });
        return values;
    }
}
