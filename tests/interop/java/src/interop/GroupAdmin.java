package interop;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.GroupSubscribedToTopicException;
import org.apache.kafka.common.errors.UnknownMemberIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** What an administrator asks of groups, and what he is refused while they have members. */
public final class GroupAdmin {
    public static void main(String[] arguments) {
        Program.main(arguments, GroupAdmin::run);
    }

    private static void run(Program program) throws Exception {
        String topic = program.named("admin");
        String other = program.named("admin-other");
        String group = program.named("admin-group");
        program.createTopics(2, topic, other);
        try (Admin admin = program.admin()) {
            try (Member member = new Member(program, "member", group).subscribe(topic)) {
                member.commits = false;
                Program.until("it has everything", () -> {
                    member.poll();
                    return member.partitions().size() == 2;
                });
                member.consumer.commitSync(Map.of(
                        new TopicPartition(topic, 0), new OffsetAndMetadata(7, "a note"),
                        new TopicPartition(other, 1), new OffsetAndMetadata(3)));
                active(admin, group, topic, other);
            }
            Program.until("the group is empty", () -> state(admin, group) == GroupState.EMPTY);
            empty(admin, group, topic);
        }
    }

    private static void active(Admin admin, String group, String topic, String other) throws Exception {
        var described = admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get();
        Program.check(described.groupState() == GroupState.STABLE, "stable: " + described);
        Program.check(described.type() == GroupType.CLASSIC, "classic: " + described);
        Program.check(described.partitionAssignor().equals("range"), "range: " + described);
        Program.check(described.members().size() == 1, "one member: " + described);
        var member = described.members().iterator().next();
        Program.check(member.assignment().topicPartitions().size() == 2, "with both partitions: " + member);
        Program.check(member.clientId().equals("member") && member.consumerId().startsWith("member-"), "" + member);
        Program.check(member.host().equals("/127.0.0.1"), "its host: " + member);
        Program.check(listed(admin, group, GroupState.STABLE), "listed as stable");
        Program.check(!listed(admin, group, GroupState.EMPTY), "not listed as empty");
        refused(admin.deleteConsumerGroups(List.of(group)).all(), GroupNotEmptyException.class);
        var at = new TopicPartition(topic, 0);
        refused(admin.alterConsumerGroupOffsets(group, Map.of(at, new OffsetAndMetadata(1))).all(),
                UnknownMemberIdException.class);
        refused(admin.deleteConsumerGroupOffsets(group, Set.of(at)).partitionResult(at),
                GroupSubscribedToTopicException.class);
        admin.deleteConsumerGroupOffsets(group, Set.of(new TopicPartition(other, 1))).all().get();
        var kept = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        Program.check(kept.keySet().equals(Set.of(at)), "only the first offset is left: " + kept);
        Program.check(kept.get(at).offset() == 7 && kept.get(at).metadata().equals("a note"), "as it was: " + kept);
    }

    private static void empty(Admin admin, String group, String topic) throws Exception {
        var first = new TopicPartition(topic, 0);
        var second = new TopicPartition(topic, 1);
        var missing = new TopicPartition(topic + "-missing", 0);
        admin.alterConsumerGroupOffsets(group, Map.of(second, new OffsetAndMetadata(4))).all().get();
        refused(admin.alterConsumerGroupOffsets(group, Map.of(missing, new OffsetAndMetadata(4))).partitionResult(missing),
                UnknownTopicOrPartitionException.class);
        refused(admin.deleteConsumerGroupOffsets(group, Set.of(missing)).partitionResult(missing),
                UnknownTopicOrPartitionException.class);
        var kept = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        Program.check(kept.get(first).offset() == 7 && kept.get(second).offset() == 4, "both: " + kept);
        admin.deleteConsumerGroups(List.of(group)).all().get();
        refused(admin.deleteConsumerGroups(List.of(group)).all(), GroupIdNotFoundException.class);
        refused(admin.describeConsumerGroups(List.of(group)).all(), GroupIdNotFoundException.class);
        var none = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        Program.check(none.isEmpty(), "nothing is left: " + none);
    }

    private static GroupState state(Admin admin, String group) throws Exception {
        return admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get().groupState();
    }

    private static boolean listed(Admin admin, String group, GroupState state) throws Exception {
        var options = new ListGroupsOptions().inGroupStates(Set.of(state)).withTypes(Set.of(GroupType.CLASSIC));
        var groups = admin.listGroups(options).all().get();
        return groups.stream().map(GroupListing::groupId).collect(Collectors.toSet()).contains(group);
    }

    private static void refused(KafkaFuture<?> future, Class<?> wanted) throws InterruptedException {
        try {
            future.get();
        } catch (ExecutionException failure) {
            Program.check(wanted.isInstance(failure.getCause()), wanted + " was expected, not " + failure.getCause());
            return;
        }
        throw new IllegalStateException(wanted + " was expected");
    }
}
