package interop;

import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.errors.InconsistentGroupProtocolException;

/** Members with several strategies: the group takes one that all of them have, and refuses who has none. */
public final class EagerGroup {
    private static final String PACKAGE = "org.apache.kafka.clients.consumer.";
    private static final String RANGE = PACKAGE + "RangeAssignor";
    private static final String ROUND_ROBIN = PACKAGE + "RoundRobinAssignor";
    private static final String STICKY = PACKAGE + "StickyAssignor";

    public static void main(String[] arguments) {
        Program.main(arguments, EagerGroup::run);
    }

    private static void run(Program program) throws Exception {
        String topic = program.named("eager");
        program.createTopics(4, topic);
        for (String strategy : List.of(RANGE, ROUND_ROBIN, STICKY)) {
            String group = program.named("eager-" + strategy.substring(PACKAGE.length()));
            try (var first = member(program, "first", group, strategy);
                    var second = member(program, "second", group, strategy)) {
                settle(List.of(first.subscribe(topic)), 4);
                settle(List.of(first, second.subscribe(topic)), 2, 2);
                Program.check(first.revoked.contains(first.assigned.get(0)), "everything is revoked first");
            }
        }
        if (!Member.MOVES) { // a coordinator that loads a group knows only the strategy that it had: nobody else may join
            common(program, topic);
        }
    }

    private static void common(Program program, String topic) throws Exception {
        String group = program.named("eager-common");
        try (var both = member(program, "both", group, RANGE + "," + ROUND_ROBIN);
                var one = member(program, "one", group, ROUND_ROBIN);
                var other = member(program, "other", group, STICKY)) {
            settle(List.of(both.subscribe(topic)), 4);
            Program.check(strategy(program, group).equals("range"), "the first choice of a lone member");
            settle(List.of(both, one.subscribe(topic)), 2, 2);
            Program.check(strategy(program, group).equals("roundrobin"), "what both have");
            other.subscribe(topic);
            try {
                Program.until("the third is refused", () -> {
                    Member.pollAll(List.of(both, one, other));
                    return false;
                });
            } catch (InconsistentGroupProtocolException refused) {
                settle(List.of(both, one), 2, 2);
                return;
            }
            throw new IllegalStateException("a member without a common strategy was let in");
        }
    }

    private static String strategy(Program program, String group) throws Exception {
        try (var admin = program.admin()) {
            return admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get().partitionAssignor();
        }
    }

    private static Member member(Program program, String name, String group, String strategies) {
        return new Member(program, name, group, ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG, strategies);
    }

    private static void settle(List<Member> members, int... counts) throws Exception {
        Program.until(members.size() + " members share the partitions", () -> {
            Member.pollAll(members);
            return Member.have(members, counts);
        });
    }
}
