package interop;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.UnknownMemberIdException;

/** Static members: a restart is no rebalance, a second one of the same name fences the first, an admin removes one. */
public final class StaticMembers {
    public static void main(String[] arguments) {
        String protocol = arguments.length > 2 ? arguments[2] : "classic";
        Program.main(arguments, program -> run(program, protocol));
    }

    private static void run(Program program, String protocol) throws Exception {
        String topic = program.named("static");
        String group = program.named("static-group");
        program.createTopics(4, topic);
        Member one = member(program, "one", group, protocol).subscribe(topic);
        try (Member two = member(program, "two", group, protocol).subscribe(topic)) {
            settle(List.of(one, two), 2, 2);
            Set<Integer> ofOne = one.partitions();
            int changes = two.assigned.size() + two.revoked.size();
            one.close(); // which does not leave the group
            try (Member again = member(program, "one", group, protocol).subscribe(topic)) {
                settle(List.of(again, two), 2, 2);
                Program.check(again.partitions().equals(ofOne), "the same partitions: " + again.partitions());
                Program.check(two.assigned.size() + two.revoked.size() == changes, "the other one noticed nothing");
                fence(program, topic, group, again, two);
            }
        }
    }

    /** A second member with the name of a living one takes its place. */
    private static void fence(Program program, String topic, String group, Member living, Member two)
            throws Exception {
        try (Member twin = member(program, "one", group, "classic").subscribe(topic)) {
            boolean isFenced = false;
            try {
                Program.until("the older one is fenced", () -> {
                    Member.pollAll(List.of(twin, two, living));
                    return false;
                });
            } catch (FencedInstanceIdException fenced) {
                isFenced = true;
            }
            Program.check(isFenced, "the older one was told");
            settle(List.of(twin, two), 2, 2);
            remove(program, group, two, twin);
        }
    }

    /** A member that an admin has removed is told so, and comes back as a new one. */
    private static void remove(Program program, String group, Member two, Member twin) throws Exception {
        try (var admin = program.admin()) {
            var unknown = new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove("nobody")));
            try {
                admin.removeMembersFromConsumerGroup(group, unknown).all().get();
                throw new IllegalStateException("a member was removed that is not there");
            } catch (ExecutionException refused) {
                Program.check(refused.getCause() instanceof UnknownMemberIdException, "it is unknown: " + refused);
            }
            var options = new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove("two")));
            admin.removeMembersFromConsumerGroup(group, options).all().get();
        }
        Program.until("the other has everything", () -> {
            twin.poll();
            return twin.partitions().size() == 4;
        });
        settle(List.of(twin, two), 2, 2);
    }

    private static Member member(Program program, String name, String group, String protocol) {
        return new Member(program, name, group, "group.instance.id", name, "group.protocol", protocol);
    }

    private static void settle(List<Member> members, int... counts) throws Exception {
        Program.until(members.size() + " members share the partitions", () -> {
            Member.pollAll(members);
            return Member.have(members, counts);
        });
    }
}
