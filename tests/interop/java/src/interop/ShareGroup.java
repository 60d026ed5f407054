package interop;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;

/** A share group's member: it accepts, releases, rejects and renews records, and sees released ones again. */
public final class ShareGroup {
    private static final int RECORDS = 12;

    public static void main(String[] arguments) {
        Program.main(arguments, ShareGroup::run);
    }

    private static void run(Program program) throws Exception {
        String topic = program.named("jobs");
        String group = program.named("workers");
        program.createTopics(1, topic);
        readFromTheBeginning(program, group);
        fill(program, topic);
        var settings = program.settings(
                "client.id", "interop-sharer", "group.id", group, "share.acknowledgement.mode", "explicit");
        try (var consumer = new KafkaShareConsumer<String, String>(settings)) {
            consumer.subscribe(List.of(topic));
            work(consumer);
        }
    }

    /** Of three records one is accepted, one released and accepted later, one rejected; the first is renewed before. */
    private static void work(KafkaShareConsumer<String, String> consumer) throws Exception {
        Set<Long> done = new HashSet<>();
        Map<Long, Integer> seen = new HashMap<>();
        Program.until("all records settled", () -> {
            for (ConsumerRecord<String, String> record : consumer.poll(Program.POLL)) {
                int times = seen.merge(record.offset(), 1, Integer::sum);
                AcknowledgeType verdict = verdict(record.offset(), times);
                consumer.acknowledge(record, verdict);
                if (verdict == AcknowledgeType.ACCEPT || verdict == AcknowledgeType.REJECT) {
                    done.add(record.offset());
                }
            }
            consumer.commitSync().forEach((partition, error) -> Program.check(error.isEmpty(), "" + error));
            return done.size() == RECORDS;
        });
        boolean again = seen.get(0L) == 2 && seen.get(1L) == 2 && seen.get(2L) == 1;
        Program.check(again, "renewed and released records come twice: " + seen);
    }

    private static AcknowledgeType verdict(long offset, int times) {
        if (offset == 0 && times == 1) {
            return AcknowledgeType.RENEW;
        }
        if (offset % 3 == 1 && times == 1) {
            return AcknowledgeType.RELEASE;
        }
        return offset % 3 == 2 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT;
    }

    private static void readFromTheBeginning(Program program, String group) throws Exception {
        var resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        var entry = new ConfigEntry("share.auto.offset.reset", "earliest");
        var earliest = new AlterConfigOp(entry, AlterConfigOp.OpType.SET);
        try (var admin = program.admin()) {
            admin.incrementalAlterConfigs(Map.of(resource, List.of(earliest))).all().get();
        }
    }

    private static void fill(Program program, String topic) {
        try (var producer = new KafkaProducer<String, String>(program.settings("client.id", "interop-producer"))) {
            for (int number = 0; number < RECORDS; number++) {
                producer.send(new ProducerRecord<>(topic, "job-" + number));
            }
        }
    }
}
