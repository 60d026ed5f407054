package descriptions;

import java.util.List;
import org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData.TopologyDescription;
import org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData.TopologyDescriptionGlobalStore;
import org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData.TopologyDescriptionNode;
import org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData.TopologyDescriptionSubtopology;

/** Descriptions of topologies to push. */
final class Descriptions {
    private static final byte SOURCE = 1;
    private static final byte PROCESSOR = 2;
    private static final byte SINK = 3;

    static TopologyDescription named(String name) {
        return switch (name) {
            case "odd-node" -> new TopologyDescription().setSubtopologies(List.of(part(node("odd", (byte) 4))));
            case "odd-store" -> new TopologyDescription().setGlobalStores(List.of(store(SINK)));
            default -> new TopologyDescription()
                .setSubtopologies(List.of(part(
                    node("in", SOURCE).setSourceTopics(List.of("lines")).setSuccessors(List.of("count")),
                    node("count", PROCESSOR).setStores(List.of("counts")).setSuccessors(List.of("out")),
                    node("out", SINK).setSinkTopic("results"))))
                .setGlobalStores(List.of(store(SOURCE)));
        };
    }

    private static TopologyDescriptionSubtopology part(TopologyDescriptionNode... nodes) {
        return new TopologyDescriptionSubtopology().setSubtopologyId("0").setNodes(List.of(nodes));
    }

    private static TopologyDescriptionNode node(String name, byte type) {
        return new TopologyDescriptionNode().setName(name).setNodeType(type);
    }

    private static TopologyDescriptionGlobalStore store(byte type) {
        return new TopologyDescriptionGlobalStore()
            .setSource(node("facts-in", type).setSourceTopics(List.of("facts")).setSuccessors(List.of("fill")))
            .setProcessor(node("fill", PROCESSOR).setStores(List.of("facts-store")));
    }

    private Descriptions() { }
}
