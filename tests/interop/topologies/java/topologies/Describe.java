package topologies;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.TopicNameExtractor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/** Writes what Topology.describe() says of several applications into a folder, one file each. */
public final class Describe {
    private Describe() {}

    public static void main(String[] arguments) throws IOException {
        for (var each : all().entrySet()) {
            Files.writeString(
                    Path.of(arguments[0], each.getKey() + ".txt"), each.getValue().describe().toString());
        }
    }

    private static Map<String, Topology> all() {
        var found = new TreeMap<String, Topology>();
        found.put("stateless", built(Describe::stateless));
        found.put("word-count", built(Describe::wordCount));
        found.put("shop", built(Describe::shop));
        found.put("windowed-join", built(Describe::windowedJoin));
        found.put("foreign-key-join", built(Describe::foreignKeyJoin));
        found.put("routing", built(Describe::routing));
        found.put("feedback", built(Describe::feedback));
        found.put("many-parts", built(Describe::manyParts));
        found.put("large", built(Describe::large));
        found.put("own-processors", ownProcessors());
        found.put("strange-names", strangeNames());
        found.put("empty", new Topology());
        return found;
    }

    private static Topology built(Consumer<StreamsBuilder> application) {
        var properties = new java.util.Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "unused:1");
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        var builder = new StreamsBuilder();
        application.accept(builder);
        return builder.build(properties);
    }

    private static KStream<String, String> read(StreamsBuilder builder, String... topics) {
        return builder.stream(List.of(topics), Consumed.with(Serdes.String(), Serdes.String()));
    }

    private static void stateless(StreamsBuilder builder) {
        read(builder, "orders")
                .filterNot((key, order) -> order.isEmpty())
                .mapValues(order -> order.strip())
                .to("clean-orders");
    }

    private static void wordCount(StreamsBuilder builder) {
        read(builder, "lines")
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word)
                .count(Materialized.as("counts"))
                .toStream()
                .mapValues(count -> count.toString())
                .to("word-counts");
    }

    /** Names given by the application; a table, a global table, branches and an aggregation. */
    private static void shop(StreamsBuilder builder) {
        KTable<String, String> customers = builder.table("customers", Materialized.as("customers-by-id"));
        GlobalKTable<String, String> products = builder.globalTable("products", Materialized.as("products-by-id"));
        var orders = builder.<String, String>stream("orders", Consumed.as("read-orders"))
                .filter((key, order) -> order != null, Named.as("drop-empty"))
                .join(products, (key, order) -> order, (order, product) -> order + product, Named.as("add-product"))
                .leftJoin(customers, (order, customer) -> order + customer);
        var branches = orders.split(Named.as("kind-"))
                .branch((key, order) -> order.startsWith("x"), Branched.as("express"))
                .branch((key, order) -> order.startsWith("g"), Branched.as("gift"))
                .defaultBranch(Branched.as("normal"));
        branches.get("kind-express").to("express-orders");
        branches.get("kind-gift").merge(branches.get("kind-normal"), Named.as("slow")).to("slow-orders");
        orders.groupBy((key, order) -> order.substring(0, 1), Grouped.as("by-region"))
                .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofHours(1)))
                .count(Materialized.as("orders-per-hour"))
                .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
                .toStream()
                .map((window, count) -> KeyValue.pair(window.key(), count.toString()))
                .to("region-counts");
    }

    private static void windowedJoin(StreamsBuilder builder) {
        var window = JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMinutes(5));
        read(builder, "clicks")
                .outerJoin(read(builder, "views"), (click, view) -> click + view, window)
                .to("seen");
    }

    private static void foreignKeyJoin(StreamsBuilder builder) {
        KTable<String, String> orders = builder.table("orders");
        KTable<String, String> customers = builder.table("customers");
        orders.join(customers, order -> order.substring(0, 4), (order, customer) -> order + customer)
                .toStream()
                .to("named-orders");
    }

    /** Sources by pattern and of several topics, a sink that chooses its topic, output that is not used. */
    private static void routing(StreamsBuilder builder) {
        TopicNameExtractor<String, String> byKey = new TopicNameExtractor<>() {
            @Override
            public String extract(String key, String value, org.apache.kafka.streams.processor.RecordContext context) {
                return "out-" + key;
            }

            @Override
            public String toString() {
                return "ByKey@1";
            }
        };
        KStream<String, String> any = builder.stream(Pattern.compile("events-[a-z]+(, old)?"));
        any.to(byKey);
        read(builder, "audit-a", "audit-b", "audit-c").peek((key, value) -> {}).foreach((key, value) -> {});
    }

    /** Reads again what it wrote itself: a circle of topics. */
    private static void feedback(StreamsBuilder builder) {
        var work = read(builder, "jobs", "retries");
        work.filter((key, job) -> job.isEmpty()).to("retries");
        work.filterNot((key, job) -> job.isEmpty())
                .repartition(Repartitioned.as("spread"))
                .mapValues(job -> job.strip())
                .to("done");
        read(builder, "done").mapValues(job -> job).to("jobs");
    }

    private static void manyParts(StreamsBuilder builder) {
        for (int part = 0; part < 12; part++) {
            read(builder, "in-" + part)
                    .groupByKey()
                    .count(Materialized.as("store-" + part))
                    .toStream()
                    .mapValues(count -> count.toString())
                    .to("out-" + part);
        }
    }

    /** Some 200 nodes in parts that depend on each other. */
    private static void large(StreamsBuilder builder) {
        var sum = read(builder, "stage-0");
        for (int stage = 1; stage <= 9; stage++) {
            KTable<String, String> facts = builder.table("facts-" + stage);
            var split = sum.split(Named.as("stage-" + stage + "-"))
                    .branch((key, value) -> value.startsWith("a"), Branched.as("a"))
                    .branch((key, value) -> value.startsWith("b"), Branched.as("b"))
                    .defaultBranch(Branched.as("rest"));
            var a = split.get("stage-" + stage + "-a").mapValues(value -> value + "!");
            var b = split.get("stage-" + stage + "-b").leftJoin(facts, (value, fact) -> value + fact);
            split.get("stage-" + stage + "-rest").peek((key, value) -> {}).to("rest-" + stage);
            sum = a.merge(b)
                    .selectKey((key, value) -> value)
                    .groupByKey(Grouped.as("group-" + stage))
                    .reduce((one, other) -> other, Materialized.as("latest-" + stage))
                    .toStream()
                    .filter((key, value) -> value != null);
        }
        sum.to("result");
    }

    private static final class Nothing implements Processor<String, String, String, String> {
        @Override
        public void process(Record<String, String> record) {}
    }

    private static StoreBuilder<?> store(String name) {
        return Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(name), Serdes.String(), Serdes.String());
    }

    private static Topology ownProcessors() {
        ProcessorSupplier<String, String, String, String> nothing = Nothing::new;
        return new Topology()
                .addSource("payments", "payments-v1", "payments-v2")
                .addSource("refunds", "refunds")
                .addProcessor("validate", nothing, "payments", "refunds")
                .addProcessor("balance", nothing, "validate")
                .addProcessor("fraud", nothing, "validate", "refunds")
                .addProcessor("report", nothing, "balance", "fraud")
                .addStateStore(store("accounts"), "balance", "report")
                .addStateStore(store("suspects"), "fraud")
                .addStateStore(store("limits"), "fraud", "balance")
                .addSink("alarms", "alarms", "fraud")
                .addSink("balances", "balances", "balance", "report")
                .addSink("rejected", "rejected", "validate");
    }

    /** Names that applications may choose, though they look like parts of the text. */
    private static Topology strangeNames() {
        ProcessorSupplier<String, String, String, String> nothing = Nothing::new;
        return new Topology()
                .addSource("read, then", "in")
                .addProcessor("count (stores: [none])", nothing, "read, then")
                .addProcessor("größer als 数える", nothing, "read, then")
                .addProcessor("none", nothing, "count (stores: [none])")
                .addSink("--> <script>\"&'", "out", "count (stores: [none])", "größer als 数える");
    }
}
