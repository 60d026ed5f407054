package interop;

import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** What a group has read as a whole: every record once, and each partition in order, whoever read it. */
final class Ledger {
    private static final Duration POLL = Duration.ofMillis(20);

    private final Map<TopicPartition, Long> next = new HashMap<>();
    private long count;

    void pollAll(Collection<Member> members) {
        for (Member member : members) {
            member.consumer.poll(POLL).forEach(record -> take(member, record));
        }
    }

    private void take(Member member, ConsumerRecord<String, String> record) {
        var at = new TopicPartition(record.topic(), record.partition());
        long expected = next.getOrDefault(at, 0L);
        Program.check(record.offset() == expected,
                member.name + " read " + at + "@" + record.offset() + " where " + expected + " was next");
        next.put(at, expected + 1);
        count++;
    }

    long count() {
        return count;
    }
}
