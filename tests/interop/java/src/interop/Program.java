package interop;

import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;

/** What all programs share: where the cluster is, names of their own, a bound on their time, and an exit code. */
final class Program {
    static final Duration TIME_LIMIT = Duration.ofSeconds(90);
    static final Duration POLL = Duration.ofMillis(200);

    final String bootstrapServers;
    private final String suffix;

    /** The work of one program. */
    interface Body {
        void run(Program program) throws Exception;
    }

    private Program(String bootstrapServers, String suffix) {
        this.bootstrapServers = bootstrapServers;
        this.suffix = suffix;
    }

    /** BOOTSTRAP [SUFFIX]: the suffix ends all names that the program makes up, so that runs do not meet. */
    static void main(String[] arguments, Body body) {
        endInTime();
        String suffix = arguments.length > 1 ? arguments[1] : UUID.randomUUID().toString().substring(0, 8);
        try {
            body.run(new Program(arguments[0], suffix));
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    private static void endInTime() {
        Thread watch = new Thread(() -> {
            try {
                Thread.sleep(TIME_LIMIT.toMillis());
            } catch (InterruptedException interrupted) {
                return;
            }
            System.err.println("not done within " + TIME_LIMIT.toSeconds() + " s");
            Thread.getAllStackTraces().forEach((thread, frames) -> System.err.println(thread + " " + List.of(frames)));
            Runtime.getRuntime().halt(3);
        });
        watch.setDaemon(true);
        watch.start();
    }

    String named(String name) {
        return name + "-" + suffix;
    }

    Map<String, Object> settings(Object... pairs) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrapServers);
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        for (int at = 0; at < pairs.length; at += 2) {
            settings.put((String) pairs[at], pairs[at + 1]);
        }
        return settings;
    }

    Admin admin() {
        return Admin.create(Map.of("bootstrap.servers", bootstrapServers, "client.id", "interop-admin"));
    }

    void createTopics(int partitions, String... names) throws Exception {
        List<NewTopic> topics = Stream.of(names).map(name -> new NewTopic(name, partitions, (short) 1)).toList();
        try (Admin admin = admin()) {
            admin.createTopics(topics).all().get();
        }
    }

    /** Repeats a step until it says true; its own waiting (a poll) paces it. */
    static void until(String what, Callable<Boolean> step) throws Exception {
        Instant end = Instant.now().plus(TIME_LIMIT.dividedBy(2));
        while (!step.call()) {
            check(Instant.now().isBefore(end), "never came: " + what);
        }
    }

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException(what);
        }
    }
}
