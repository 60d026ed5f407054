package descriptions;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.internals.AsyncKafkaConsumer;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceListener;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a streams group as the library itself has it: it heartbeats, and pushes its description when asked. */
final class Membership {
    static String start(String servers, String groupId, String topic) {
        var part = new StreamsRebalanceData.Subtopology(Set.of(topic), Set.of(), Map.of(), Map.of(), List.of());
        var data = new StreamsRebalanceData(
            UUID.randomUUID(), Optional.empty(), Optional.empty(), Map.of("0", part), Map.of(), Map::of, Map::of);
        data.setWireTopologyDescription(Descriptions.named("whole"));
        var deserializer = ByteArrayDeserializer.class.getName();
        var config = new ConsumerConfig(Map.of(
            "bootstrap.servers", servers, "group.id", groupId, "group.protocol", "consumer",
            "key.deserializer", deserializer, "value.deserializer", deserializer));
        var consumer = new AsyncKafkaConsumer<byte[], byte[]>(
            config, new ByteArrayDeserializer(), new ByteArrayDeserializer(), Optional.of(data));
        consumer.subscribe(Set.of(topic), new Listener(data));
        var thread = new Thread(() -> poll(consumer), "member");
        thread.setDaemon(true);
        thread.start();
        return "started";
    }

    private static void poll(AsyncKafkaConsumer<byte[], byte[]> consumer) {
        while (true) {
            consumer.poll(Duration.ofMillis(100));
        }
    }

    /** Takes what it is given. */
    private record Listener(StreamsRebalanceData data) implements StreamsRebalanceListener {
        @Override
        public void onTasksRevoked(Set<StreamsRebalanceData.TaskId> tasks) { }

        @Override
        public void onTasksAssigned(StreamsRebalanceData.Assignment assignment) {
            data.setReconciledAssignment(assignment);
        }

        @Override
        public void onAllTasksLost() {
            data.setReconciledAssignment(StreamsRebalanceData.Assignment.EMPTY);
        }
    }

    private Membership() { }
}
