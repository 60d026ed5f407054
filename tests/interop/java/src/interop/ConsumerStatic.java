package interop;

import java.util.List;
import java.util.Set;
import org.apache.kafka.common.errors.UnreleasedInstanceIdException;

/** Static members of the new protocol: a restart moves nothing, and the name of a living member is taken. */
public final class ConsumerStatic {
    public static void main(String[] arguments) {
        Program.main(arguments, ConsumerStatic::run);
    }

    private static void run(Program program) throws Exception {
        String topic = program.named("static848");
        String group = program.named("static848-group");
        program.createTopics(4, topic);
        Member one = member(program, "one", group).subscribe(topic);
        try (Member two = member(program, "two", group).subscribe(topic)) {
            settle(List.of(one, two), 2, 2);
            Set<Integer> ofOne = one.partitions();
            int changes = two.assigned.size() + two.revoked.size();
            twin(program, topic, group, one, two);
            one.close(); // which steps away, and does not leave
            try (Member again = member(program, "one", group).subscribe(topic)) {
                settle(List.of(again, two), 2, 2);
                Program.check(again.partitions().equals(ofOne), "the same partitions: " + again.partitions());
                Program.check(two.assigned.size() + two.revoked.size() == changes, "the other one noticed nothing");
            }
        }
    }

    private static void twin(Program program, String topic, String group, Member living, Member two) throws Exception {
        try (Member twin = member(program, "one", group).subscribe(topic)) {
            boolean isRefused = false;
            try {
                Program.until("the twin is refused", () -> {
                    Member.pollAll(List.of(living, two, twin));
                    return false;
                });
            } catch (UnreleasedInstanceIdException refused) {
                isRefused = true;
            }
            Program.check(isRefused, "the name of a living member is taken");
        }
        Member.pollAll(List.of(living, two));
        Program.check(Member.have(List.of(living, two), 2, 2), "nobody lost anything");
    }

    private static Member member(Program program, String name, String group) {
        return new Member(program, name, group, "group.instance.id", name, "group.protocol", "consumer");
    }

    private static void settle(List<Member> members, int... counts) throws Exception {
        Program.until(members.size() + " members share the partitions", () -> {
            Member.pollAll(members);
            return Member.have(members, counts);
        });
    }
}
