import java.io.BufferedReader;
import java.io.FileWriter;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts the words of the topic "lines": JOURNAL SETTING=VALUE... It writes its tasks and states into the journal, one
 * JSON object to a line, and ends in order when its standard input is closed.
 */
public final class WordTotals {
    private static PrintWriter journal;
    private static TreeSet<String> tasks = new TreeSet<>();

    public static void main(String[] arguments) throws Exception {
        journal = new PrintWriter(new FileWriter(arguments[0], StandardCharsets.UTF_8, true), true);
        note("began", "");
        var settings = new Properties();
        settings.put("group.protocol", "streams");
        settings.put("default.key.serde", Serdes.String().getClass().getName());
        settings.put("default.value.serde", Serdes.String().getClass().getName());
        for (int at = 1; at < arguments.length; at++) {
            int sign = arguments[at].indexOf('=');
            settings.put(arguments[at].substring(0, sign), arguments[at].substring(sign + 1));
        }
        var app = new KafkaStreams(topology().build(), settings);
        app.setStateListener((now, before) -> note("state", ",\"state\":\"" + now + "\""));
        app.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        app.start();
        live(app);
        note("counted", ",\"words\":" + counted(app));
        boolean ended = app.close(Duration.ofSeconds(10));
        note("ended", "");
        Runtime.getRuntime().halt(ended ? 0 : 1);
    }

    private static StreamsBuilder topology() {
        var builder = new StreamsBuilder();
        builder.<String, String>stream("lines")
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.as("words"))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("totals")).withValueSerde(Serdes.Long()));
        return builder;
    }

    /** Look at the tasks now and then, until the input is closed. */
    private static void live(KafkaStreams app) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var watch = new Thread(() -> {
            while (true) {
                noteTasks(app);
                try {
                    Thread.sleep(100);
                } catch (InterruptedException end) {
                    return;
                }
            }
        });
        watch.setDaemon(true);
        watch.start();
        while (input.readLine() != null) {
            continue;
        }
        watch.interrupt();
        watch.join();
    }

    private static void noteTasks(KafkaStreams app) {
        var now = new TreeSet<String>();
        for (var thread : app.metadataForLocalThreads()) {
            for (var task : thread.activeTasks()) {
                now.add("\"" + task.taskId() + "\"");
            }
        }
        if (!now.equals(tasks)) {
            tasks = now;
            note("tasks", ",\"tasks\":" + now);
        }
    }

    private static long counted(KafkaStreams app) {
        long words = 0;
        try {
            var type = QueryableStoreTypes.<String, Long>keyValueStore();
            try (var all = app.store(StoreQueryParameters.fromNameAndType("totals", type)).all()) {
                while (all.hasNext()) {
                    words += all.next().value;
                }
            }
        } catch (RuntimeException notNow) {
            return -1;
        }
        return words;
    }

    private static synchronized void note(String what, String more) {
        journal.println("{\"at_ms\":" + System.currentTimeMillis() + ",\"what\":\"" + what + "\"" + more + "}");
    }
}
