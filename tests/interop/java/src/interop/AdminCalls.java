package interop;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListStreamsGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/** The questions of an operator: the cluster, the quorum, topics, configs, and every group that a client made. */
public final class AdminCalls {
    public static void main(String[] arguments) {
        Program.main(arguments, AdminCalls::run);
    }

    private static void run(Program program) throws Exception {
        try (Admin admin = program.admin()) {
            cluster(admin);
            String topic = program.named("ledger");
            program.createTopics(1, topic);
            topic(admin, topic);
            configs(admin, topic);
            groups(admin);
            admin.deleteTopics(List.of(topic)).all().get();
        }
    }

    private static void cluster(Admin admin) throws Exception {
        var quorum = admin.describeMetadataQuorum().quorumInfo().get();
        Program.check(quorum.leaderId() == quorum.voters().get(0).replicaId(), "the only voter leads: " + quorum);
        var cluster = admin.describeCluster();
        var brokers = cluster.nodes().get().stream().map(node -> node.id()).toList();
        Program.check(!cluster.clusterId().get().isEmpty() && !brokers.isEmpty(), "a cluster has brokers");
        var features = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
        Program.check(features.containsKey("metadata.version"), "features: " + features);
        Program.check(!admin.describeLogDirs(brokers).allDescriptions().get().isEmpty(), "log dirs");
        admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get();
        admin.describeUserScramCredentials().all().get();
        admin.listTransactions().all().get();
        admin.listPartitionReassignments().reassignments().get();
    }

    private static void topic(Admin admin, String topic) throws Exception {
        var partition = new TopicPartition(topic, 0);
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all().get();
        var described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        Program.check(described.partitions().size() == 2, "two partitions: " + described);
        Program.check(admin.listTopics().names().get().contains(topic), "the topic is listed");
        for (OffsetSpec spec : List.of(OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.maxTimestamp())) {
            admin.listOffsets(Map.of(partition, spec)).all().get();
        }
        admin.describeProducers(List.of(partition)).all().get();
        admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(0))).all().get();
    }

    private static void configs(Admin admin, String topic) throws Exception {
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        var change = new AlterConfigOp(new ConfigEntry("retention.ms", "60000"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
        Program.until("the config", () -> admin.describeConfigs(List.of(resource)).all().get()
                .get(resource).get("retention.ms").value().equals("60000"));
        admin.listConfigResources(Set.of(ConfigResource.Type.TOPIC), new ListConfigResourcesOptions()).all().get();
    }

    private static void groups(Admin admin) throws Exception {
        for (GroupListing group : admin.listGroups().all().get()) {
            if (group.groupId().startsWith("raw-")) {
                continue; // made of raw frames, with assignments that no client could read
            }
            List<String> id = List.of(group.groupId());
            GroupType type = group.type().orElse(GroupType.UNKNOWN);
            switch (type) {
                case CLASSIC -> admin.describeClassicGroups(id).all().get();
                case CONSUMER -> admin.describeConsumerGroups(id).all().get();
                case SHARE -> {
                    admin.describeShareGroups(id).all().get();
                    var spec = new ListShareGroupOffsetsSpec();
                    admin.listShareGroupOffsets(Map.of(group.groupId(), spec)).all().get();
                }
                case STREAMS -> {
                    admin.describeStreamsGroups(id).all().get();
                    var spec = new ListStreamsGroupOffsetsSpec();
                    admin.listStreamsGroupOffsets(Map.of(group.groupId(), spec)).all().get();
                }
                default -> throw new IllegalStateException("a group of no known kind: " + group);
            }
        }
    }
}
