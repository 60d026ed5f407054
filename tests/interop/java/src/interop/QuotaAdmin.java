package interop;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DeleteTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;

/** Quotas of requests and of new partitions: set, seen, felt, and taken away again. */
public final class QuotaAdmin {
    private static final int CALLS = 25;
    private static final int ATTEMPTS = 20;

    public static void main(String[] arguments) {
        Program.main(arguments, QuotaAdmin::run);
    }

    private static void run(Program program) throws Exception {
        mutations(program, program.named("mutations"));
        requests(program, program.named("requests"));
    }

    private static void mutations(Program program, String client) throws Exception {
        limit(program, client, "controller_mutation_rate", 2.0);
        List<NewTopic> topics = List.of();
        try (Admin admin = admin(program, client)) {
            long pause = 0;
            // Apache's controller learns of a quota a moment after its brokers do, and they are asked above.
            for (int attempt = 1; pause == 0; attempt++) {
                Program.check(attempt <= ATTEMPTS, "the third is too much");
                topics = List.of(topic(client, 10 * attempt), topic(client, 10 * attempt + 1),
                        topic(client, 10 * attempt + 2));
                var options = new CreateTopicsOptions().retryOnQuotaViolation(false);
                var created = admin.createTopics(topics, options).values();
                created.get(topics.get(0).name()).get();
                created.get(topics.get(1).name()).get();
                pause = pause(created.get(topics.get(2).name()));
            }
            Instant started = Instant.now();
            admin.createTopics(List.of(topics.get(2))).all().get();
            Program.check(since(started).toMillis() > 500, "it waits for its quota: " + since(started));
            var names = topics.stream().map(NewTopic::name).toList();
            var options = new DeleteTopicsOptions().retryOnQuotaViolation(false);
            var deleted = admin.deleteTopics(names, options).topicNameValues();
            Program.check(pause(deleted.get(names.get(2))) > 0, "deleting costs as much");
        }
        limit(program, client, "controller_mutation_rate", null);
        try (Admin admin = admin(program, client)) {
            Instant started = Instant.now();
            admin.createTopics(List.of(topic(client, 4), topic(client, 5))).all().get();
            Program.check(since(started).toMillis() < 5_000, "without a limit nobody waits: " + since(started));
        }
    }

    private static void requests(Program program, String client) throws Exception {
        Duration free = calls(program, client);
        limit(program, client, "request_percentage", 0.005);
        Duration slow = calls(program, client);
        Program.check(slow.toMillis() > free.toMillis() + 4_000, "a limit of time is felt: " + free + ", " + slow);
        limit(program, client, "request_percentage", null);
        Duration again = calls(program, client);
        Program.check(again.toMillis() < slow.toMillis() / 2, "and is gone when it is taken away: " + again);
    }

    private static Duration calls(Program program, String client) throws Exception {
        try (Admin admin = admin(program, client)) {
            Instant started = Instant.now();
            for (int call = 0; call < CALLS; call++) {
                admin.describeCluster().nodes().get();
            }
            return since(started);
        }
    }

    private static void limit(Program program, String client, String key, Double value) throws Exception {
        var entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, client));
        var filter = ClientQuotaFilter.containsOnly(
                List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.CLIENT_ID, client)));
        var change = new ClientQuotaAlteration(entity, List.of(new ClientQuotaAlteration.Op(key, value)));
        try (Admin admin = program.admin()) {
            admin.alterClientQuotas(List.of(change)).all().get();
            Map<ClientQuotaEntity, Map<String, Double>> wanted =
                    value == null ? Map.of() : Map.of(entity, Map.of(key, value));
            Program.until(key, () -> admin.describeClientQuotas(filter).entities().get().equals(wanted));
        }
    }

    private static long pause(org.apache.kafka.common.KafkaFuture<Void> future) throws Exception {
        try {
            future.get();
            return 0;
        } catch (ExecutionException failure) {
            Program.check(failure.getCause() instanceof ThrottlingQuotaExceededException, "" + failure.getCause());
            return ((ThrottlingQuotaExceededException) failure.getCause()).throttleTimeMs();
        }
    }

    private static NewTopic topic(String client, int number) {
        return new NewTopic(client + "-" + number, 12, (short) 1);
    }

    private static Admin admin(Program program, String client) {
        return Admin.create(Map.of("bootstrap.servers", program.bootstrapServers, "client.id", client));
    }

    private static Duration since(Instant started) {
        return Duration.between(started, Instant.now());
    }
}
