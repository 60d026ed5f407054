package interop;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/** Counts words with group.protocol=streams: a repartition topic, a changelog, two instances of which one leaves. */
public final class StreamsGroup {
    private static final int PARTITIONS = 2;
    private static final Map<String, Long> EXPECTED = Map.of("tea", 3L, "milk", 2L, "bread", 1L);

    public static void main(String[] arguments) {
        Program.main(arguments, StreamsGroup::run);
    }

    private static void run(Program program) throws Exception {
        String source = program.named("words");
        String sink = program.named("counts");
        program.createTopics(PARTITIONS, source, sink);
        fill(program, source);
        Path state = Files.createTempDirectory("interop-streams");
        try (var first = instance(program, source, sink, state.resolve("first"));
                var second = instance(program, source, sink, state.resolve("second"))) {
            first.start();
            second.start();
            Program.check(counts(program, sink).equals(EXPECTED), "the words are counted");
            second.close(Duration.ofSeconds(20));
            first.close(Duration.ofSeconds(20));
        }
    }

    private static Topology topology(String source, String sink) {
        var builder = new StreamsBuilder();
        builder.stream(source, Consumed.with(Serdes.String(), Serdes.String()))
                .groupBy((key, word) -> word, Grouped.with("by-word", Serdes.String(), Serdes.String()))
                .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                        .withKeySerde(Serdes.String())
                        .withValueSerde(Serdes.Long()))
                .toStream()
                .mapValues(count -> Long.toString(count))
                .to(sink, Produced.with(Serdes.String(), Serdes.String()));
        return builder.build();
    }

    private static KafkaStreams instance(Program program, String source, String sink, Path state) {
        var settings = new Properties();
        settings.put("bootstrap.servers", program.bootstrapServers);
        settings.put("application.id", program.named("word-count"));
        settings.put("client.id", "interop-streams-" + state.getFileName());
        settings.put("group.protocol", "streams");
        settings.put("state.dir", state.toString());
        settings.put("num.stream.threads", 1);
        settings.put("commit.interval.ms", 200);
        settings.put("application.server", "localhost:7070");
        settings.put("consumer.auto.offset.reset", "earliest");
        return new KafkaStreams(topology(source, sink), settings);
    }

    private static void fill(Program program, String topic) {
        try (var producer = new KafkaProducer<String, String>(program.settings("client.id", "interop-producer"))) {
            for (String word : List.of("tea", "milk", "tea", "bread", "milk", "tea")) {
                producer.send(new ProducerRecord<>(topic, word.substring(0, 1), word));
            }
        }
    }

    private static Map<String, Long> counts(Program program, String sink) throws Exception {
        Map<String, Long> counts = new HashMap<>();
        var settings = program.settings("client.id", "interop-reader", "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<String, String>(settings)) {
            consumer.assign(consumer.partitionsFor(sink).stream()
                    .map(each -> new TopicPartition(each.topic(), each.partition()))
                    .toList());
            Program.until("all counts", () -> {
                consumer.poll(Program.POLL).forEach(record -> counts.put(record.key(), Long.valueOf(record.value())));
                return counts.equals(EXPECTED);
            });
        }
        return counts;
    }
}
