package interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Thirty members of one group, with each of the broker's assignors. */
public final class ConsumerCrowd {
    private static final int MEMBERS = 30;
    private static final int PARTITIONS = 60;
    private static final Duration POLL = Duration.ofMillis(5);

    public static void main(String[] arguments) {
        Program.main(arguments, ConsumerCrowd::run);
    }

    private static void run(Program program) throws Exception {
        String topic = program.named("crowd");
        program.createTopics(PARTITIONS, topic);
        for (String assignor : List.of("uniform", "range")) {
            crowd(program, topic, assignor);
        }
    }

    private static void crowd(Program program, String topic, String assignor) throws Exception {
        List<Member> members = new ArrayList<>();
        try {
            for (int index = 0; index < MEMBERS; index++) {
                String name = assignor + "-" + index;
                members.add(new Member(program, name, program.named("crowd-" + assignor), "group.protocol", "consumer",
                        "group.remote.assignor", assignor).subscribe(topic));
            }
            settle(members);
            List<Member> half = new ArrayList<>(members.subList(0, MEMBERS / 2));
            members.removeAll(half);
            half.forEach(Member::close);
            settle(members);
        } finally {
            members.forEach(Member::close);
        }
    }

    private static void settle(List<Member> members) throws Exception {
        int[] counts = new int[members.size()];
        Arrays.fill(counts, PARTITIONS / members.size());
        Program.until(members.size() + " members share the partitions", () -> {
            members.forEach(member -> member.consumer.poll(POLL));
            return Member.have(members, counts);
        });
    }
}
