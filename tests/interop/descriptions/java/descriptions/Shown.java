package descriptions;

import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.StreamsGroupTopologyDescription;
import org.apache.kafka.clients.admin.StreamsGroupTopologyDescription.Node;
import org.apache.kafka.clients.admin.StreamsGroupTopologyDescription.Processor;
import org.apache.kafka.clients.admin.StreamsGroupTopologyDescription.Sink;
import org.apache.kafka.clients.admin.StreamsGroupTopologyDescription.Source;

/** What the admin client has made of a description, in one line. */
final class Shown {
    static String text(StreamsGroupTopologyDescription description) {
        String parts = description.subtopologies().stream()
            .map(part -> part.id() + "{" + part.nodes().stream().map(Shown::text).collect(Collectors.joining(" ")) + "}")
            .collect(Collectors.joining(" "));
        String stores = description.globalStores().stream()
            .map(store -> "global{" + text(store.source()) + " " + text(store.processor()) + "}")
            .collect(Collectors.joining(" "));
        return parts + " " + stores;
    }

    private static String text(Node node) {
        return node.name() + ":" + kind(node) + ":" + node.predecessors() + ">" + node.successors();
    }

    private static String kind(Node node) {
        if (node instanceof Source source) {
            return "reads" + source.topics();
        }
        if (node instanceof Processor processor) {
            return "keeps" + processor.stores();
        }
        return "writes[" + ((Sink) node).topic().orElse("") + "]";
    }

    private Shown() { }
}
