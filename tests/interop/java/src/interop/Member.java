package interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/** A consumer in a group that remembers what was given to it and taken from it, and what it has read. */
final class Member implements AutoCloseable, ConsumerRebalanceListener {
    static final boolean MOVES = "moving".equals(System.getenv("OTTLA_INTEROP_BROKERS"));

    final String name;
    final KafkaConsumer<String, String> consumer;
    final List<Set<Integer>> assigned = new ArrayList<>();
    final List<Set<Integer>> revoked = new ArrayList<>();
    final Map<TopicPartition, Long> next = new HashMap<>();
    final List<String> values = new ArrayList<>();
    boolean commits = true;

    Member(Program program, String name, String group, Object... pairs) {
        this.name = name;
        var settings = program.settings(pairs);
        settings.put("client.id", name);
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        if (!"consumer".equals(settings.get("group.protocol"))) {
            settings.put("heartbeat.interval.ms", 300);
            settings.putIfAbsent("session.timeout.ms", 6000);
        }
        consumer = new KafkaConsumer<>(settings);
    }

    Member subscribe(String... topics) {
        consumer.subscribe(List.of(topics), this);
        return this;
    }

    void poll() {
        for (var record : consumer.poll(Program.POLL)) {
            var at = new TopicPartition(record.topic(), record.partition());
            Long expected = next.get(at);
            Program.check(expected == null || record.offset() >= expected, name + " reads " + at + " in order");
            next.put(at, record.offset() + 1);
            values.add(record.value());
        }
    }

    /** Whether the members have so many partitions each, and none twice. */
    static boolean have(Collection<Member> members, int... counts) {
        Set<TopicPartition> all = new HashSet<>();
        int at = 0;
        for (Member member : members) {
            if (member.consumer.assignment().size() != counts[at++]) {
                return false;
            }
            all.addAll(member.consumer.assignment());
        }
        return all.size() == Arrays.stream(counts).sum();
    }

    static void pollAll(Collection<Member> members) {
        members.forEach(Member::poll);
    }

    Set<Integer> partitions() {
        return numbers(consumer.assignment());
    }

    private static Set<Integer> numbers(Collection<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::partition).collect(Collectors.toCollection(TreeSet::new));
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        assigned.add(numbers(partitions));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        revoked.add(numbers(partitions));
        if (commits) {
            consumer.commitSync();
        }
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        revoked.add(numbers(partitions));
    }

    /** While coordinators move, a consumer may know of none when it is closed, and then tells that it could not commit. */
    @Override
    public void close() {
        try {
            consumer.close();
        } catch (KafkaException error) {
            if (!MOVES || !(error.getCause() instanceof CommitFailedException)) {
                throw error;
            }
            System.err.println(name + " was closed without a coordinator: " + error.getCause().getMessage());
        }
    }
}
