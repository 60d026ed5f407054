package interop;

import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Writes to a topic all the time, to one partition after the other, until it is closed. */
final class Feed implements AutoCloseable {
    private static final int PAUSE_MS = 2;

    private final AtomicLong acknowledged = new AtomicLong();
    private final Thread thread;
    private volatile boolean goesOn = true;
    private volatile Throwable failure;

    Feed(Program program, String topic, int partitions) {
        thread = new Thread(() -> write(program, topic, partitions));
        thread.start();
    }

    private void write(Program program, String topic, int partitions) {
        try (var producer = new KafkaProducer<String, String>(program.settings("client.id", "feed", "linger.ms", 0))) {
            for (long at = 0; goesOn; at++) {
                var record = new ProducerRecord<>(topic, (int) (at % partitions), "key", "value-" + at);
                producer.send(record, (metadata, refused) -> {
                    if (refused == null) {
                        acknowledged.incrementAndGet();
                    } else {
                        failure = refused;
                    }
                });
                Thread.sleep(PAUSE_MS);
            }
        } catch (InterruptedException interrupted) {
            failure = interrupted;
        }
    }

    /** Ends the writing and says how many records there are. */
    long finish() throws InterruptedException {
        goesOn = false;
        thread.join();
        Program.check(failure == null, "the feed failed: " + failure);
        return acknowledged.get();
    }

    @Override
    public void close() {
        goesOn = false;
    }
}
