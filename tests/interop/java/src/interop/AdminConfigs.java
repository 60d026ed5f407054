package interop;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.ConfigResource.Type;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Settings of everything that has some: described with synonyms and texts, changed, refused, and listed. */
public final class AdminConfigs {
    public static void main(String[] arguments) {
        Program.main(arguments, AdminConfigs::run);
    }

    private static void run(Program program) throws Exception {
        try (Admin admin = program.admin()) {
            String topic = program.named("settings");
            program.createTopics(1, topic);
            topics(admin, new ConfigResource(Type.TOPIC, topic));
            brokers(admin);
            groups(admin, new ConfigResource(Type.GROUP, program.named("settled")));
            loggers(admin);
            admin.deleteTopics(List.of(topic)).all().get();
        }
    }

    private static void topics(Admin admin, ConfigResource topic) throws Exception {
        alter(admin, topic, op("retention.ms", "60000", OpType.SET), op("cleanup.policy", "compact", OpType.APPEND));
        Program.until("the change", () -> value(admin, topic, "cleanup.policy").equals("delete,compact"));
        ConfigEntry entry = described(admin, topic).get("retention.ms");
        Program.check(entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, "source: " + entry);
        Program.check(entry.type() == ConfigEntry.ConfigType.LONG && !entry.isReadOnly(), "type: " + entry);
        Program.check(entry.synonyms().get(0).name().equals("retention.ms"), "synonyms: " + entry);
        Program.check(!entry.documentation().isEmpty(), "a text: " + entry);
        Program.check(described(admin, topic).entries().size() >= 33, "all settings");
        var validating = new AlterConfigsOptions().validateOnly(true);
        admin.incrementalAlterConfigs(Map.of(topic, List.of(op("retention.ms", "1", OpType.SET))), validating).all().get();
        Program.check(value(admin, topic, "retention.ms").equals("60000"), "validating changes nothing");
        refused(admin, topic, InvalidConfigurationException.class, op("retention.ms", "soon", OpType.SET));
        refused(admin, topic, InvalidConfigurationException.class, op("no.such.setting", "1", OpType.SET));
        var nowhere = new ConfigResource(Type.TOPIC, "nowhere-" + topic.name());
        refused(admin, nowhere, UnknownTopicOrPartitionException.class, op("retention.ms", "1", OpType.SET));
    }

    private static void brokers(Admin admin) throws Exception {
        var broker = new ConfigResource(Type.BROKER, "1");
        var all = new ConfigResource(Type.BROKER, "");
        Program.check(described(admin, broker).entries().size() >= 340, "all settings of a broker");
        Program.check(described(admin, broker).get("node.id").isReadOnly(), "the id stays");
        Program.check(described(admin, broker).get("ssl.key.password").isSensitive(), "a password is secret");
        alter(admin, all, op("log.cleaner.threads", "1", OpType.SET));
        Program.until("all brokers", () -> described(admin, broker).get("log.cleaner.threads").source()
                == ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG);
        alter(admin, all, op("log.cleaner.threads", "", OpType.DELETE));
        refused(admin, broker, InvalidRequestException.class, op("num.partitions", "3", OpType.SET));
    }

    private static void groups(Admin admin, ConfigResource group) throws Exception {
        alter(admin, group, op("share.record.lock.duration.ms", "45000", OpType.SET));
        Program.until("the group", () -> value(admin, group, "share.record.lock.duration.ms").equals("45000"));
        var listed = admin.listConfigResources(Set.of(Type.GROUP), new ListConfigResourcesOptions()).all().get();
        Program.check(listed.contains(group), "listed: " + listed);
        refused(admin, group, InvalidConfigurationException.class,
                op("share.record.lock.duration.ms", "500", OpType.SET));
        alter(admin, group, op("share.record.lock.duration.ms", "", OpType.DELETE));
    }

    private static void loggers(Admin admin) throws Exception {
        var loggers = new ConfigResource(Type.BROKER_LOGGER, "1");
        String before = value(admin, loggers, "root");
        alter(admin, loggers, op("root", "WARN", OpType.SET));
        Program.check(value(admin, loggers, "root").equals("WARN"), "the level of root");
        alter(admin, loggers, op("root", before, OpType.SET));
        refused(admin, loggers, InvalidConfigurationException.class, op("root", "LOUD", OpType.SET));
        refused(admin, loggers, InvalidRequestException.class, op("root", "", OpType.DELETE));
    }

    private static AlterConfigOp op(String name, String value, OpType type) {
        return new AlterConfigOp(new ConfigEntry(name, value), type);
    }

    private static void alter(Admin admin, ConfigResource resource, AlterConfigOp... ops) throws Exception {
        Collection<AlterConfigOp> changes = List.of(ops);
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    private static void refused(Admin admin, ConfigResource resource, Class<?> error, AlterConfigOp change)
            throws Exception {
        try {
            alter(admin, resource, change);
        } catch (ExecutionException refusal) {
            Program.check(error.isInstance(refusal.getCause()), change + ": " + refusal.getCause());
            return;
        }
        throw new AssertionError(change + " was not refused");
    }

    private static String value(Admin admin, ConfigResource resource, String name) throws Exception {
        return described(admin, resource).get(name).value();
    }

    private static Config described(Admin admin, ConfigResource resource) throws Exception {
        var options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        return admin.describeConfigs(List.of(resource), options).all().get().get(resource);
    }
}
