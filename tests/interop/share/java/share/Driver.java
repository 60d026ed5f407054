package share;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.protocol.Errors;

/**
 * Unmodified share consumers, driven by lines on standard input: words with tabs between, one line of answer for each.
 * An answer begins with ok, or with error and the name of Kafka's error or of the exception.
 */
public final class Driver {
    private final String bootstrapServers;
    private final Map<String, Member> members = new HashMap<>();

    /** A consumer, what it was given last, and what it heard about its acknowledgements. */
    private static final class Member {
        final KafkaShareConsumer<String, String> consumer;
        final Map<String, ConsumerRecord<String, String>> given = new HashMap<>();
        final List<String> heard = new ArrayList<>();
        final AtomicBoolean isOver = new AtomicBoolean();
        Thread thread;

        Member(KafkaShareConsumer<String, String> consumer) {
            this.consumer = consumer;
        }
    }

    private Driver(String bootstrapServers) {
        this.bootstrapServers = bootstrapServers;
    }

    public static void main(String[] arguments) throws Exception {
        var driver = new Driver(arguments[0]);
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(driver.answer(line.split("\t")));
        }
        Runtime.getRuntime().halt(0);
    }

    private String answer(String[] words) {
        try {
            return ("ok\t" + obey(words)).strip();
        } catch (KafkaException failure) {
            return "error\t" + name(failure) + "\t" + oneLine(failure);
        } catch (Exception failure) {
            return "error\t" + failure.getClass().getSimpleName() + "\t" + oneLine(failure);
        }
    }

    private String obey(String[] words) throws Exception {
        return switch (words[0]) {
            case "open" -> open(words);
            case "poll" -> poll(members.get(words[1]), Long.parseLong(words[2]));
            case "acknowledge" -> acknowledge(members.get(words[1]), words[2], words[3], words[4]);
            case "commit" -> commit(members.get(words[1]));
            case "heard" -> heard(members.get(words[1]));
            case "lock" -> "" + members.get(words[1]).consumer.acquisitionLockTimeoutMs().orElse(-1);
            case "work" -> work(members.get(words[1]));
            case "close" -> close(members.remove(words[1]));
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    /** open NAME GROUP TOPIC [SETTING VALUE]... */
    private String open(String[] words) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrapServers);
        settings.put("group.id", words[2]);
        settings.put("client.id", words[1]);
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        for (int at = 4; at + 1 < words.length; at += 2) {
            settings.put(words[at], words[at + 1]);
        }
        var member = new Member(new KafkaShareConsumer<>(settings));
        member.consumer.setAcknowledgementCommitCallback((offsets, failure) -> offsets.forEach(
                (partition, each) -> member.heard.add(partition.partition() + " " + each.size() + " " + name(failure))));
        member.consumer.subscribe(List.of(words[3].split(",")));
        members.put(words[1], member);
        return "";
    }

    private static String poll(Member member, long timeoutMs) {
        member.given.clear();
        List<String> shown = new ArrayList<>();
        for (ConsumerRecord<String, String> record : member.consumer.poll(Duration.ofMillis(timeoutMs))) {
            member.given.put(record.partition() + "\t" + record.offset(), record);
            shown.add(record.partition() + " " + record.offset() + " " + record.deliveryCount().orElse((short) -1) + " "
                    + record.value());
        }
        return String.join("\t", shown);
    }

    private static String acknowledge(Member member, String partition, String offset, String verdict) {
        var record = member.given.get(partition + "\t" + offset);
        member.consumer.acknowledge(record, AcknowledgeType.valueOf(verdict));
        return "";
    }

    private static String commit(Member member) {
        List<String> shown = new ArrayList<>();
        Map<TopicIdPartition, Optional<KafkaException>> outcomes = member.consumer.commitSync();
        outcomes.forEach((partition, error) -> shown.add(partition.partition() + " " + name(error.orElse(null))));
        return String.join("\t", shown);
    }

    private static String heard(Member member) {
        String shown = String.join("\t", member.heard);
        member.heard.clear();
        return shown;
    }

    /** Poll and accept for ever, in a thread; every record is printed before it is accepted, and once more after it. */
    private static String work(Member member) {
        member.thread = new Thread(() -> {
            while (!member.isOver.get()) {
                acceptSome(member);
            }
        });
        member.thread.start();
        return "";
    }

    private static void acceptSome(Member member) {
        List<String> places = new ArrayList<>();
        for (ConsumerRecord<String, String> record : member.consumer.poll(Duration.ofMillis(200))) {
            String place = record.partition() + " " + record.offset();
            System.out.println("record\t" + place + " " + record.deliveryCount().orElse((short) -1) + " " + record.value());
            member.consumer.acknowledge(record);
            places.add(place);
        }
        boolean isWell = member.consumer.commitSync().values().stream().allMatch(Optional::isEmpty);
        if (isWell && !places.isEmpty()) {
            System.out.println("accepted\t" + String.join("\t", places));
        }
    }

    private static String close(Member member) throws InterruptedException {
        member.isOver.set(true);
        if (member.thread != null) {
            member.thread.join();
        }
        member.consumer.close();
        return "";
    }

    private static String name(Throwable failure) {
        if (failure == null) {
            return "NONE";
        }
        Errors error = Errors.forException(failure);
        return error == Errors.UNKNOWN_SERVER_ERROR ? failure.getClass().getSimpleName() : error.name();
    }

    private static String oneLine(Throwable failure) {
        return ("" + failure.getMessage()).replaceAll("\\s+", " ");
    }
}
