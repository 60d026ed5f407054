package interop;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Reads the topics in which the coordinators keep their state, all that there are, to their end. */
public final class InternalTopics {
    public static void main(String[] arguments) {
        Program.main(arguments, InternalTopics::run);
    }

    private static void run(Program program) throws Exception {
        String topic = program.named("noted");
        program.createTopics(1, topic);
        var settings = program.settings(
                "client.id", "interop-internal", "group.id", program.named("noters"), "enable.auto.commit", false,
                "key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer",
                "value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        try (var consumer = new KafkaConsumer<byte[], byte[]>(settings)) {
            consumer.commitSync(Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(5, "so far")));
            List<TopicPartition> partitions = internalPartitions(program, consumer);
            Program.check(read(consumer, partitions) > 0, "there are records in " + partitions);
        }
    }

    private static List<TopicPartition> internalPartitions(Program program, KafkaConsumer<?, ?> consumer)
            throws Exception {
        try (var admin = program.admin()) {
            return admin.listTopics(new ListTopicsOptions().listInternal(true)).listings().get().stream()
                    .filter(listing -> listing.isInternal())
                    .flatMap(listing -> consumer.partitionsFor(listing.name()).stream())
                    .map(each -> new TopicPartition(each.topic(), each.partition()))
                    .toList();
        }
    }

    private static int read(KafkaConsumer<byte[], byte[]> consumer, Collection<TopicPartition> partitions)
            throws Exception {
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        int[] count = {0};
        Program.until("the ends " + ends, () -> {
            count[0] += consumer.poll(Program.POLL).count();
            return ends.entrySet().stream().allMatch(end -> consumer.position(end.getKey()) >= end.getValue());
        });
        return count[0];
    }
}
