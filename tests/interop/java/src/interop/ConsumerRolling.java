package interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;

/** A live group is rolled from the classic to the new protocol and back, member by member, and reads every record once. */
public final class ConsumerRolling {
    private static final int PARTITIONS = 6;
    private static final int MEMBERS = 3;

    public static void main(String[] arguments) {
        Program.main(arguments, ConsumerRolling::run);
    }

    private static void run(Program program) throws Exception {
        String topic = program.named("rolling");
        String group = program.named("rolling-group");
        program.createTopics(PARTITIONS, topic);
        Ledger ledger = new Ledger();
        List<Member> members = new ArrayList<>();
        try (Feed feed = new Feed(program, topic, PARTITIONS);
                Admin admin = program.admin()) {
            for (int index = 0; index < MEMBERS; index++) {
                members.add(member(program, index, group, "classic").subscribe(topic));
            }
            settle(admin, group, ledger, members);
            Program.check(type(admin, group) == GroupType.CLASSIC, "it begins as a classic group");
            roll(program, admin, topic, group, "consumer", ledger, members);
            Program.check(type(admin, group) == GroupType.CONSUMER, "it is a consumer group now");
            roll(program, admin, topic, group, "classic", ledger, members);
            Program.check(type(admin, group) == GroupType.CLASSIC, "it is a classic group again");
            long written = feed.finish();
            Program.until("all " + written + " records", () -> {
                ledger.pollAll(members);
                return ledger.count() >= written;
            });
            Program.check(ledger.count() == written, "each record once: " + ledger.count() + " of " + written);
        } finally {
            members.forEach(Member::close);
        }
    }

    private static void roll(
            Program program, Admin admin, String topic, String group, String protocol, Ledger ledger,
            List<Member> members) throws Exception {
        for (int index = 0; index < MEMBERS; index++) {
            ledger.close(members.get(index), members);
            members.set(index, member(program, index, group, protocol).subscribe(topic));
            settle(admin, group, ledger, members);
        }
    }

    private static Member member(Program program, int index, String group, String protocol) {
        String name = protocol + "-" + index;
        if (protocol.equals("consumer")) {
            return new Member(program, name, group, "group.protocol", protocol);
        }
        return new Member(program, name, group, "group.protocol", protocol, "session.timeout.ms", 30_000);
    }

    private static GroupType type(Admin admin, String group) throws Exception {
        return admin.listGroups().all().get().stream()
                .filter(each -> each.groupId().equals(group)).findFirst().orElseThrow().type().orElseThrow();
    }

    /**
     * Waits until all have their part and nobody is behind. A group that becomes a classic one while a member is behind
     * gives it a generation that the member has not heard of, and takes no commit of the old one.
     */
    private static void settle(Admin admin, String group, Ledger ledger, List<Member> members) throws Exception {
        int[] counts = new int[members.size()];
        Arrays.fill(counts, PARTITIONS / members.size());
        Program.until(members.size() + " members share the partitions", () -> {
            ledger.pollAll(members);
            return Member.have(members, counts) && state(admin, group) == GroupState.STABLE;
        });
    }

    private static GroupState state(Admin admin, String group) throws Exception {
        return admin.describeConsumerGroups(List.of(group)).all().get().get(group).groupState();
    }
}
