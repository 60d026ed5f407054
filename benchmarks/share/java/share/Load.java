package share;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Share consumers that accept all they get, each in a thread: BOOTSTRAP GROUP TOPIC CONSUMERS RECORDS. */
public final class Load {
    private static final AtomicLong count = new AtomicLong();
    private static final AtomicLong firstAt = new AtomicLong();
    private static final AtomicLong lastAt = new AtomicLong();

    public static void main(String[] arguments) throws Exception {
        long records = Long.parseLong(arguments[4]);
        long startedAt = System.nanoTime();
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(arguments[3]); number++) {
            Thread thread = new Thread(() -> consume(arguments[0], arguments[1], arguments[2], records));
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("seconds " + (firstAt.get() - startedAt) / 1e9 + " " + (lastAt.get() - firstAt.get()) / 1e9);
    }

    private static void consume(String bootstrapServers, String group, String topic, long records) {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrapServers, "group.id", group);
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaShareConsumer<>(settings, bytes, new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (count.get() < records) {
                int got = consumer.poll(Duration.ofMillis(100)).count();
                if (got > 0) {
                    firstAt.compareAndSet(0, System.nanoTime());
                    if (count.addAndGet(got) >= records) {
                        lastAt.compareAndSet(0, System.nanoTime());
                    }
                }
            }
            consumer.commitSync();
        }
    }
}
