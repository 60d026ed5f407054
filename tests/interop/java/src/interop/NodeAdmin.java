package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** What an administrator does with topics, partitions and records of one node. */
public final class NodeAdmin {
    public static void main(String[] arguments) {
        Program.main(arguments, NodeAdmin::run);
    }

    private static void run(Program program) throws Exception {
        try (Admin admin = program.admin()) {
            topics(program, admin);
            records(program, admin);
            cluster(admin);
        }
    }

    private static void topics(Program program, Admin admin) throws Exception {
        String name = program.named("admin");
        var topic = new NewTopic(name, Optional.of(3), Optional.empty()).configs(Map.of("retention.ms", "60000"));
        admin.createTopics(List.of(topic), new CreateTopicsOptions().validateOnly(true)).all().get();
        Program.check(!admin.listTopics().names().get().contains(name), "only validated");
        var created = admin.createTopics(List.of(topic));
        created.all().get();
        Program.check(created.numPartitions(name).get() == 3, "three partitions");
        Program.check(created.replicationFactor(name).get() == 1, "one replica");
        Program.check(created.config(name).get().get("retention.ms").value().equals("60000"), "the setting is told");
        Uuid id = created.topicId(name).get();
        refused(TopicExistsException.class, admin.createTopics(List.of(topic)).all());
        refused(InvalidReplicationFactorException.class,
                admin.createTopics(List.of(new NewTopic(name + "-x", 1, (short) 3))).all());
        refused(InvalidPartitionsException.class,
                admin.createTopics(List.of(new NewTopic(name + "-x", 0, (short) 1))).all());
        refused(InvalidTopicException.class, admin.createTopics(List.of(new NewTopic("a b", 1, (short) 1))).all());

        admin.createPartitions(Map.of(name, NewPartitions.increaseTo(5))).all().get();
        refused(InvalidPartitionsException.class,
                admin.createPartitions(Map.of(name, NewPartitions.increaseTo(5))).all());
        var byName = admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
        Program.check(byName.partitions().size() == 5 && byName.topicId().equals(id), "described by name");
        Program.check(!byName.isInternal() && byName.partitions().get(4).leader() != null, "with a leader");
        var byId = admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get().get(id);
        Program.check(byId.name().equals(name), "described by id");
        refused(UnknownTopicOrPartitionException.class,
                admin.describeTopics(List.of(name + "-x")).allTopicNames());

        admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
        Program.until("the topic is gone", () -> !admin.listTopics().names().get().contains(name));
        refused(UnknownTopicOrPartitionException.class, admin.deleteTopics(List.of(name)).all());
    }

    private static void records(Program program, Admin admin) throws Exception {
        String name = program.named("records");
        program.createTopics(1, name);
        var partition = new TopicPartition(name, 0);
        try (var producer = new KafkaProducer<String, String>(program.settings())) {
            for (long timestamp : List.of(1_000L, 5_000L, 3_000L)) {
                producer.send(new ProducerRecord<>(name, 0, timestamp, "key", "value")).get();
            }
        }
        Program.check(offset(admin, partition, OffsetSpec.earliest()).offset() == 0, "earliest");
        Program.check(offset(admin, partition, OffsetSpec.latest()).offset() == 3, "latest");
        Program.check(offset(admin, partition, OffsetSpec.forTimestamp(2_000)).offset() == 1, "by time");
        Program.check(offset(admin, partition, OffsetSpec.forTimestamp(9_000)).offset() == -1, "later than all");
        var newest = offset(admin, partition, OffsetSpec.maxTimestamp());
        Program.check(newest.offset() == 1 && newest.timestamp() == 5_000, "the newest");
        Program.check(offset(admin, partition, OffsetSpec.earliestLocal()).offset() == 0, "earliest here");
        Program.check(offset(admin, partition, OffsetSpec.latestTiered()).offset() == -1, "nothing elsewhere");

        var producers = admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers();
        Program.check(producers.size() == 1, "one producer is known");
        var known = producers.get(0);
        Program.check(known.lastSequence() == 2 && known.currentTransactionStartOffset().isEmpty(), known.toString());

        var deleted = admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(2)));
        Program.check(deleted.lowWatermarks().get(partition).get().lowWatermark() == 2, "the new start");
        Program.check(offset(admin, partition, OffsetSpec.earliest()).offset() == 2, "begins there");
        refused(OffsetOutOfRangeException.class,
                admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(99))).all());
        admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(-1))).all().get();
        Program.check(offset(admin, partition, OffsetSpec.earliest()).offset() == 3, "all are deleted");
    }

    private static ListOffsetsResultInfo offset(Admin admin, TopicPartition partition, OffsetSpec spec) throws Exception {
        return admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get();
    }

    private static void cluster(Admin admin) throws Exception {
        var cluster = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
        Program.check(cluster.nodes().get().size() == 1, "one node");
        Program.check(cluster.clusterId().get().length() == 22, "a cluster id");
        Program.check(!cluster.authorizedOperations().get().isEmpty(), "operations");
        Program.check(cluster.controller().get().id() == cluster.nodes().get().iterator().next().id(), "itself");
        var quorum = admin.describeMetadataQuorum().quorumInfo().get();
        Program.check(quorum.voters().size() == 1 && quorum.observers().isEmpty(), "a quorum of one");
        Program.check(quorum.leaderId() == 1 && quorum.highWatermark() > 0, "which leads");
        var features = admin.describeFeatures().featureMetadata().get();
        List<String> levels = new ArrayList<>();
        features.finalizedFeatures().forEach((name, range) -> levels.add(name + "=" + range.maxVersionLevel()));
        levels.sort(null);
        Program.check(levels.equals(List.of(
                "eligible.leader.replicas.version=1", "group.version=1", "kraft.version=1", "metadata.version=30",
                "share.version=1", "streams.version=1", "transaction.version=2")), levels.toString());
        Program.check(admin.listPartitionReassignments().reassignments().get().equals(Map.of()), "nothing moves");
        Program.check(Set.copyOf(admin.listTopics().names().get()).size() > 0, "topics are listed");
    }

    private static void refused(Class<? extends Exception> why, KafkaFuture<?> future) throws Exception {
        try {
            future.get();
        } catch (ExecutionException failure) {
            Program.check(why.isInstance(failure.getCause()), "expected " + why + ", got " + failure.getCause());
            return;
        }
        Program.check(false, "not refused: " + why);
    }
}
