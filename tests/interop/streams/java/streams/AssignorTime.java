package streams;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;

import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/** MEMBERS SUBTOPOLOGIES TASKS: how long Kafka's own assignor takes, once the virtual machine is warm. */
public final class AssignorTime {
    private static final int ROUNDS = 15;

    public static void main(String[] arguments) {
        int members = Integer.parseInt(arguments[0]);
        int tasks = Integer.parseInt(arguments[2]);
        List<String> subtopologies = new ArrayList<>();
        for (int each = 0; each < Integer.parseInt(arguments[1]); each++) {
            subtopologies.add(Integer.toString(each));
        }
        TopologyDescriber topology = new TopologyDescriber() {
            @Override
            public List<String> subtopologies() {
                return subtopologies;
            }

            @Override
            public int maxNumInputPartitions(String subtopology) throws NoSuchElementException {
                return tasks;
            }

            @Override
            public boolean isStateful(String subtopology) {
                return true;
            }
        };
        var group = new GroupSpecImpl(specs(members), Map.of("num.standby.replicas", "1"));
        long best = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            long start = System.nanoTime();
            new StickyTaskAssignor().assign(group, topology);
            best = Math.min(best, System.nanoTime() - start);
        }
        System.out.println("SECONDS " + best / 1e9);
    }

    private static Map<String, AssignmentMemberSpec> specs(int members) {
        Map<String, AssignmentMemberSpec> specs = new HashMap<>();
        for (int each = 0; each < members; each++) {
            specs.put("m" + each, new AssignmentMemberSpec(Optional.empty(), Optional.empty(), Map.of(), Map.of(), Map.of(),
                    "p" + each / 2, Map.of(), Map.of(), Map.of()));
        }
        return specs;
    }
}
