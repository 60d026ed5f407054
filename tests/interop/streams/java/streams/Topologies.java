package streams;

import java.time.Duration;
import java.util.Arrays;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;

/** Small applications by name. Each reads topics PREFIX-left, PREFIX-right or PREFIX-words and writes PREFIX-out. */
final class Topologies {
    private static final Consumed<String, String> TEXT = Consumed.with(Serdes.String(), Serdes.String());
    private static final Produced<String, String> OUT = Produced.with(Serdes.String(), Serdes.String());

    private Topologies() {}

    static Topology named(String name, String prefix) {
        var builder = new StreamsBuilder();
        switch (name) {
            case "stateless" -> stateless(builder, prefix);
            case "count" -> count(builder, prefix);
            case "table-table" -> tableTable(builder, prefix);
            case "stream-table" -> streamTable(builder, prefix);
            case "windowed" -> windowed(builder, prefix);
            case "global" -> global(builder, prefix);
            default -> throw new IllegalArgumentException(name);
        }
        return builder.build();
    }

    private static KStream<String, String> left(StreamsBuilder builder, String prefix) {
        return builder.stream(prefix + "-left", TEXT);
    }

    private static void stateless(StreamsBuilder builder, String prefix) {
        builder.stream(prefix + "-words", TEXT)
                .filterNot((key, word) -> word.isEmpty())
                .mapValues(word -> word.toUpperCase(java.util.Locale.ROOT))
                .to(prefix + "-out", OUT);
    }

    /** With a repartition topic and a changelog. */
    private static void count(StreamsBuilder builder, String prefix) {
        builder.stream(prefix + "-words", TEXT)
                .flatMap((key, line) -> Arrays.stream(line.split(" "))
                        .map(word -> KeyValue.pair(word, word))
                        .toList())
                .groupByKey(Grouped.with("by-word", Serdes.String(), Serdes.String()))
                .count(Materialized.as("counts"))
                .toStream()
                .mapValues(count -> Long.toString(count))
                .to(prefix + "-out", OUT);
    }

    private static void tableTable(StreamsBuilder builder, String prefix) {
        KTable<String, String> left = builder.table(prefix + "-left", TEXT);
        KTable<String, String> right = builder.table(prefix + "-right", TEXT);
        left.join(right, (one, other) -> one + "+" + other).toStream().to(prefix + "-out", OUT);
    }

    private static void streamTable(StreamsBuilder builder, String prefix) {
        KTable<String, String> right = builder.table(prefix + "-right", TEXT);
        left(builder, prefix)
                .join(right, (one, other) -> one + "+" + other, Joined.with(Serdes.String(), Serdes.String(), Serdes.String()))
                .to(prefix + "-out", OUT);
    }

    private static void windowed(StreamsBuilder builder, String prefix) {
        KStream<String, String> right = builder.stream(prefix + "-right", TEXT);
        var within = JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofSeconds(10));
        left(builder, prefix)
                .join(right, (one, other) -> one + "+" + other, within,
                        StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()))
                .to(prefix + "-out", OUT);
    }

    private static void global(StreamsBuilder builder, String prefix) {
        var right = builder.globalTable(prefix + "-right", TEXT);
        left(builder, prefix).join(right, (key, one) -> key, (one, other) -> one + "+" + other).to(prefix + "-out", OUT);
    }
}
