package interop;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * BOOTSTRAP TOPIC RACK COUNT: a consumer in a rack reads so many records of partition 0 from its beginning, and goes on
 * until it is sent to a replica. It prints that replica; -1 if nobody has sent it anywhere.
 */
final class RackConsumer {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Duration TIME_LIMIT = Duration.ofSeconds(60);
    private static final Duration SETTLED = Duration.ofSeconds(3);

    private RackConsumer() {}

    public static void main(String[] arguments) {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", arguments[0],
                "client.rack", arguments[2],
                "auto.offset.reset", "earliest",
                "key.deserializer", StringDeserializer.class,
                "value.deserializer", StringDeserializer.class);
        var at = new TopicPartition(arguments[1], 0);
        long wanted = Long.parseLong(arguments[3]);
        var deadline = Instant.now().plus(TIME_LIMIT);
        try (var consumer = new KafkaConsumer<String, String>(settings)) {
            consumer.assign(List.of(at));
            consumer.seekToBeginning(List.of(at));
            long read = 0;
            var settled = Instant.now().plus(SETTLED);
            while (Instant.now().isBefore(deadline) && (read < wanted || Instant.now().isBefore(settled))) {
                read += consumer.poll(POLL).count();
            }
            Program.check(read == wanted, "read " + read + " of " + wanted);
            System.out.println("replica " + replica(consumer));
        }
    }

    private static int replica(KafkaConsumer<String, String> consumer) {
        return consumer.metrics().entrySet().stream()
                .filter(each -> each.getKey().name().equals("preferred-read-replica"))
                .map(each -> ((Number) each.getValue().metricValue()).intValue())
                .findAny()
                .orElse(-1);
    }
}
