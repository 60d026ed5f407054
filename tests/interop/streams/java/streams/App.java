package streams;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/**
 * One instance of an application: TOPOLOGY PREFIX SETTING=VALUE... It tells its states on standard output, and obeys
 * lines on standard input: owner KEY (whose state is asked for a key), get KEY (from the local store), close.
 */
public final class App {
    public static void main(String[] arguments) throws Exception {
        var settings = new Properties();
        settings.put("group.protocol", "streams");
        settings.put("default.key.serde", Serdes.String().getClass().getName());
        settings.put("default.value.serde", Serdes.String().getClass().getName());
        settings.put("commit.interval.ms", "200");
        settings.put("consumer.auto.offset.reset", "earliest");
        for (int at = 2; at < arguments.length; at++) {
            int sign = arguments[at].indexOf('=');
            settings.put(arguments[at].substring(0, sign), arguments[at].substring(sign + 1));
        }
        var app = new KafkaStreams(Topologies.named(arguments[0], arguments[1]), settings);
        app.setStateListener((now, before) -> say("STATE " + now));
        app.setUncaughtExceptionHandler(error -> {
            say("ERROR " + error);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        app.start();
        obey(app);
    }

    private static void obey(KafkaStreams app) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, java.nio.charset.StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "owner" -> say("ANSWER " + owner(app, words[1]));
                case "get" -> say("ANSWER " + get(app, words[1]));
                case "close" -> {
                    boolean ended = app.close(Duration.ofSeconds(30));
                    say("CLOSED " + ended);
                    System.exit(ended ? 0 : 1);
                }
                default -> say("ANSWER ?");
            }
        }
        Runtime.getRuntime().halt(2);
    }

    private static String owner(KafkaStreams app, String key) {
        try {
            var found = app.queryMetadataForKey("counts", key, Serdes.String().serializer());
            return found.activeHost().host() + ":" + found.activeHost().port();
        } catch (RuntimeException error) {
            return error.getClass().getSimpleName();
        }
    }

    private static String get(KafkaStreams app, String key) {
        try {
            var store = app.store(StoreQueryParameters.fromNameAndType("counts", QueryableStoreTypes.<String, Long>keyValueStore()));
            return String.valueOf(store.get(key));
        } catch (RuntimeException error) {
            return error.getClass().getSimpleName();
        }
    }

    private static synchronized void say(String text) {
        System.out.println(text);
        System.out.flush();
    }
}
