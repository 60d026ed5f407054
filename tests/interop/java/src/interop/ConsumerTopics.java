package interop;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidRegularExpression;

/** Subscriptions by name and by pattern, which change, and topics that come and grow while they are subscribed to. */
public final class ConsumerTopics {
    public static void main(String[] arguments) {
        Program.main(arguments, ConsumerTopics::run);
    }

    private static void run(Program program) throws Exception {
        String one = program.named("topics-one");
        String two = program.named("topics-two");
        String late = program.named("topics-late");
        program.createTopics(2, one, two);
        byName(program, one, two, late);
        byPattern(program, one);
        wrongPattern(program);
    }

    private static void byName(Program program, String one, String two, String late) throws Exception {
        try (Member member = member(program, "names").subscribe(one);
                Admin admin = program.admin()) {
            expect(member, Set.of(one), 2);
            member.subscribe(one, two);
            expect(member, Set.of(one, two), 4);
            member.subscribe(two, late);
            expect(member, Set.of(two), 2);
            program.createTopics(3, late);
            expect(member, Set.of(two, late), 5);
            admin.createPartitions(Map.of(late, NewPartitions.increaseTo(6))).all().get();
            expect(member, Set.of(two, late), 8);
            member.commits = false; // of a topic that is gone nothing can be committed
            admin.deleteTopics(List.of(late)).all().get();
            expect(member, Set.of(two), 2);
            member.consumer.unsubscribe();
            Program.check(member.consumer.assignment().isEmpty(), "nothing is left");
        }
    }

    /** The client resolves a pattern of Java itself; one of RE2 is the broker's to resolve. */
    private static void byPattern(Program program, String one) throws Exception {
        String start = program.named("re");
        program.createTopics(1, start + ".a", start + ".b", "x" + start + ".a");
        try (Member member = member(program, "java-pattern")) {
            member.consumer.subscribe(Pattern.compile(Pattern.quote(start) + "\\.[ab]"), member);
            expect(member, Set.of(start + ".a", start + ".b"), 2);
        }
        try (Member member = member(program, "re2-pattern")) {
            member.consumer.subscribe(new SubscriptionPattern(start + "\\.[a-c]"), member);
            expect(member, Set.of(start + ".a", start + ".b"), 2);
            program.createTopics(2, start + ".c", start + ".d");
            expect(member, Set.of(start + ".a", start + ".b", start + ".c"), 4);
            member.consumer.subscribe(new SubscriptionPattern(start + "\\.d"), member);
            expect(member, Set.of(start + ".d"), 2);
            member.consumer.unsubscribe();
            member.subscribe(one);
            expect(member, Set.of(one), 2);
        }
    }

    private static void wrongPattern(Program program) throws Exception {
        try (Member member = member(program, "wrong-pattern")) {
            member.consumer.subscribe(new SubscriptionPattern("(a"), member);
            boolean isRefused = false;
            try {
                Program.until("the pattern is refused", () -> {
                    member.poll();
                    return false;
                });
            } catch (InvalidRegularExpression refused) {
                isRefused = true;
            }
            Program.check(isRefused, "a pattern that cannot be is refused");
        }
    }

    private static Member member(Program program, String name) {
        return new Member(program, name, program.named("topics-" + name), "group.protocol", "consumer",
                "metadata.max.age.ms", 500);
    }

    private static void expect(Member member, Set<String> topics, int partitions) throws Exception {
        Program.until(partitions + " partitions of " + topics, () -> {
            member.poll();
            var assignment = member.consumer.assignment();
            Set<String> names = assignment.stream().map(TopicPartition::topic).collect(Collectors.toCollection(TreeSet::new));
            return names.equals(topics) && assignment.size() == partitions;
        });
    }
}
