package interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Members of the new protocol come and go while records arrive: none is lost, read twice or out of order. */
public final class ConsumerUnderLoad {
    private static final int PARTITIONS = 6;

    public static void main(String[] arguments) {
        Program.main(arguments, ConsumerUnderLoad::run);
    }

    private static void run(Program program) throws Exception {
        String topic = program.named("load");
        String group = program.named("load-group");
        program.createTopics(PARTITIONS, topic);
        Ledger ledger = new Ledger();
        List<Member> members = new ArrayList<>();
        try (Feed feed = new Feed(program, topic, PARTITIONS)) {
            for (int count = 1; count <= 3; count++) {
                members.add(new Member(program, "member-" + count, group, "group.protocol", "consumer"));
                members.get(count - 1).subscribe(topic);
                settle(ledger, members);
            }
            Member first = members.get(0);
            int revocations = first.revoked.size();
            ledger.close(members.get(1), members);
            members.remove(1);
            settle(ledger, members);
            Program.check(first.revoked.size() == revocations, "who stays loses nothing when another leaves");
            members.add(new Member(program, "late", group, "group.protocol", "consumer").subscribe(topic));
            settle(ledger, members);
            ledger.close(members.get(0), members);
            members.remove(0);
            settle(ledger, members);
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

    private static void settle(Ledger ledger, List<Member> members) throws Exception {
        int[] counts = new int[members.size()];
        Arrays.fill(counts, PARTITIONS / members.size());
        Program.until(members.size() + " members share the partitions", () -> {
            ledger.pollAll(members);
            return Member.have(members, counts);
        });
    }
}
