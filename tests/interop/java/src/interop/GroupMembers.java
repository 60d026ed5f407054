package interop;

import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Two members of one group, with either protocol: they share the partitions, commit, and one takes over. */
final class GroupMembers {
    private static final int PARTITIONS = 4;

    private GroupMembers() {}

    static void run(Program program, String protocol) throws Exception {
        String topic = program.named("orders-" + protocol);
        String group = program.named("group-" + protocol);
        program.createTopics(PARTITIONS, topic);
        fill(program, topic);
        try (var first = member(program, group, protocol, "interop-first");
                var second = member(program, group, protocol, "interop-second")) {
            Set<TopicPartition> read = new HashSet<>();
            join(first, topic);
            Program.until("the first member has everything", () -> {
                poll(first, read);
                return first.assignment().size() == PARTITIONS;
            });
            join(second, topic);
            Program.until("both members have a part", () -> {
                poll(first, read);
                poll(second, read);
                return first.assignment().size() == PARTITIONS / 2 && second.assignment().size() == PARTITIONS / 2;
            });
            Program.until("a record of each partition", () -> {
                poll(first, read);
                poll(second, read);
                return read.size() == PARTITIONS;
            });
            first.commitSync();
            second.commitSync();
            first.unsubscribe();
            Program.until("the second member has everything", () -> {
                poll(second, read);
                return second.assignment().size() == PARTITIONS;
            });
            var committed = second.committed(second.assignment());
            boolean all = committed.values().stream().allMatch(each -> each != null && each.offset() == 1);
            Program.check(all, "one record of each partition is committed: " + committed);
        }
    }

    private static void fill(Program program, String topic) {
        try (var producer = new KafkaProducer<String, String>(program.settings("client.id", "interop-producer"))) {
            for (int partition = 0; partition < PARTITIONS; partition++) {
                producer.send(new ProducerRecord<>(topic, partition, "key", "value-" + partition));
            }
        }
    }

    private static KafkaConsumer<String, String> member(
            Program program, String group, String protocol, String clientId) {
        var settings = program.settings(
                "client.id", clientId, "group.id", group, "group.protocol", protocol, "auto.offset.reset", "earliest",
                "enable.auto.commit", false);
        if (protocol.equals("classic")) {
            // With the defaults the others hear of a new member after three seconds.
            settings.put("heartbeat.interval.ms", 500);
        }
        return new KafkaConsumer<>(settings);
    }

    private static void join(KafkaConsumer<String, String> member, String topic) {
        member.subscribe(List.of(topic), new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                member.commitSync();
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}
        });
    }

    private static void poll(KafkaConsumer<String, String> member, Set<TopicPartition> read) {
        read.addAll(member.poll(Program.POLL).partitions());
    }
}
