package interop;

import java.io.FileReader;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Logs in once with each properties file and prints how that went, a line each: the name of the file, and ok or the
 * class of the exception. A file that is called forever-SECONDS writes a record every 100 ms for so long.
 */
final class Login {
    private static final int TIMEOUT_MS = 20_000;

    public static void main(String[] arguments) throws Exception {
        for (String path : arguments) {
            Properties properties = new Properties();
            try (FileReader reader = new FileReader(path)) {
                properties.load(reader);
            }
            String name = path.substring(path.lastIndexOf('/') + 1).replace(".properties", "");
            System.out.println(name + " " + outcome(name, properties));
        }
        System.exit(0);
    }

    private static String outcome(String name, Properties properties) throws Exception {
        properties.put("default.api.timeout.ms", TIMEOUT_MS);
        properties.put("request.timeout.ms", TIMEOUT_MS);
        try {
            if (name.startsWith("forever-")) {
                write(properties, Duration.ofSeconds(Integer.parseInt(name.substring("forever-".length()))));
            } else {
                try (Admin admin = Admin.create(properties)) {
                    admin.describeCluster().nodes().get();
                }
            }
            return "ok";
        } catch (ExecutionException failure) {
            return failure.getCause().getClass().getSimpleName();
        }
    }

    private static void write(Properties properties, Duration howLong) throws Exception {
        properties.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, StringSerializer.class.getName());
        properties.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, StringSerializer.class.getName());
        properties.put(ProducerConfig.RETRIES_CONFIG, 0);
        properties.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, false);
        try (Admin admin = Admin.create(properties)) {
            try {
                admin.createTopics(java.util.List.of(
                        new org.apache.kafka.clients.admin.NewTopic("forever", 1, (short) 1))).all().get();
            } catch (ExecutionException exists) {
                // from an earlier run
            }
        }
        try (var producer = new KafkaProducer<String, String>(properties)) {
            for (Instant end = Instant.now().plus(howLong); Instant.now().isBefore(end); Thread.sleep(100)) {
                producer.send(new ProducerRecord<>("forever", "x")).get();
            }
            double renewed = producer.metrics().entrySet().stream()
                    .filter(each -> each.getKey().name().equals("successful-reauthentication-total"))
                    .mapToDouble(each -> ((Number) each.getValue().metricValue()).doubleValue()).sum();
            if (renewed < 1) {
                throw new ExecutionException(new IllegalStateException("never logged in anew"));
            }
        }
    }
}
