package interop;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** Cooperative rebalances: only partitions that move are revoked, and who keeps one goes on reading. */
public final class CooperativeGroup {
    private static final int PARTITIONS = 6;

    public static void main(String[] arguments) {
        Program.main(arguments, CooperativeGroup::run);
    }

    private static void run(Program program) throws Exception {
        String topic = program.named("cooperative");
        String group = program.named("cooperative-group");
        program.createTopics(PARTITIONS, topic);
        String strategy = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor";
        try (var first = new Member(program, "first", group, "partition.assignment.strategy", strategy);
                var second = new Member(program, "second", group, "partition.assignment.strategy", strategy);
                var third = new Member(program, "third", group, "partition.assignment.strategy", strategy)) {
            settle(List.of(first.subscribe(topic)), 6);
            settle(List.of(first, second.subscribe(topic)), 3, 3);
            Program.check(lost(first).equals(second.partitions()), "only what moved was revoked: " + first.revoked);
            settle(List.of(first, second, third.subscribe(topic)), 2, 2, 2);
            Set<Integer> moved = new TreeSet<>(third.partitions());
            Program.check(moved.stream().noneMatch(first.partitions()::contains), "nothing is owned twice");
            Set<Integer> kept = first.partitions();
            int revocations = first.revoked.size();
            second.consumer.unsubscribe();
            settle(List.of(first, third), 3, 3);
            Program.check(first.partitions().containsAll(kept), "first keeps " + kept);
            Program.check(first.revoked.size() == revocations, "nothing is revoked when a member leaves");
        }
    }

    private static void settle(List<Member> members, int... counts) throws Exception {
        Program.until(members.size() + " members share the partitions", () -> {
            Member.pollAll(members);
            return Member.have(members, counts);
        });
    }

    private static Set<Integer> lost(Member member) {
        return member.revoked.stream().flatMap(Set::stream).collect(Collectors.toCollection(TreeSet::new));
    }
}
