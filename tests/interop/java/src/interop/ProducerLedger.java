package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * BOOTSTRAP TOPIC PARTITIONS PAUSE_MS: idempotent producers, one for each codec, write numbered values until standard
 * input ends, and pause between two values of a partition. When the first values of one are stored, it prints "started"
 * and its name: from then on the partitions know its sequence numbers. In the end it prints what was acknowledged, a
 * line each: name, partition, offset, number; and how many each has sent.
 */
final class ProducerLedger {
    private static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    private static final int TIME_LIMIT_MS = 300_000;

    private static volatile boolean goesOn = true;
    private static int pauseMs;

    public static void main(String[] arguments) throws Exception {
        pauseMs = Integer.parseInt(arguments[3]);
        var ledgers = new ArrayList<ProducerLedger>();
        for (String codec : CODECS) {
            ledgers.add(new ProducerLedger(arguments[0], arguments[1], Integer.parseInt(arguments[2]), codec));
        }
        System.in.readAllBytes();
        goesOn = false;
        for (var ledger : ledgers) {
            ledger.thread.join(TIME_LIMIT_MS);
            ledger.acknowledged.forEach(System.out::println);
            System.out.println("sent " + ledger.name + " " + ledger.sent);
        }
        System.exit(ledgers.stream().allMatch(each -> each.failure == null) ? 0 : 1);
    }

    private final ConcurrentLinkedQueue<String> acknowledged = new ConcurrentLinkedQueue<>();
    private final String name;
    private final Thread thread;
    private volatile long sent;
    private volatile Throwable failure;

    private ProducerLedger(String servers, String topic, int partitions, String codec) {
        name = "java-" + codec;
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", servers,
                "client.id", name,
                "compression.type", codec,
                "linger.ms", 5,
                "delivery.timeout.ms", TIME_LIMIT_MS,
                "key.serializer", StringSerializer.class,
                "value.serializer", StringSerializer.class);
        thread = new Thread(() -> write(settings, topic, partitions));
        thread.start();
    }

    private void write(Map<String, Object> settings, String topic, int partitions) {
        try (var producer = new KafkaProducer<String, String>(settings)) {
            for (long number = 0; goesOn; number++) {
                for (int partition = 0; partition < partitions; partition++) {
                    note(producer, topic, partition, number);
                }
                sent = number + 1;
                if (number == 0) {
                    producer.flush();
                    System.out.println("started " + name);
                }
                Thread.sleep(pauseMs);
            }
        } catch (Exception problem) {
            fail(problem);
        }
    }

    private void note(KafkaProducer<String, String> producer, String topic, int partition, long number) {
        producer.send(new ProducerRecord<>(topic, partition, null, name + " " + number), (at, refused) -> {
            if (refused == null) {
                acknowledged.add(name + " " + at.partition() + " " + at.offset() + " " + number);
            } else {
                fail(refused);
            }
        });
    }

    private void fail(Throwable problem) {
        failure = problem;
        System.err.println(name + ": " + problem);
    }
}
