package interop;

import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;

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

    /** Commits what a member has read and closes it. Whoever is told that there is a rebalance takes part in it first. */
    void close(Member member, Collection<Member> members) throws Exception {
        Program.until(member.name + " commits", () -> {
            try {
                member.consumer.commitSync();
                return true;
            } catch (RebalanceInProgressException | CommitFailedException rebalancing) {
                pollAll(members);
                return false;
            }
        });
        member.close();
    }

    long count() {
        return count;
    }
}
