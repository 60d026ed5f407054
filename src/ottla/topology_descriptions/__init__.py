"""Plugins that keep the topology descriptions of Kafka Streams applications (KIP-1331).

A broker with a plugin asks one member of each streams group to describe its topology, and gives what it hears to the
plugin; `ottla streams topology`, and Apache Kafka's tools from 4.4 on, show it. The setting
`group.streams.topology.description.plugin.class` names the plugin's class:

==========================================================================  ===========================================
ottla.topology_descriptions.TopicPlugin                                     in a compacted topic
ottla.topology_descriptions.InMemoryPlugin                                  in the broker's memory
org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin           the same; Apache Kafka's name for it
any other dotted name                                                       a class of your own, derived from
                                                                            `TopologyDescriptionPlugin`
==========================================================================  ===========================================
"""

from ottla.topology_descriptions.description import (
    GlobalStore,
    Node,
    Processor,
    Sink,
    Source,
    Subtopology,
    TopologyDescription,
    from_json,
    to_json,
)
from ottla.topology_descriptions.in_memory import InMemoryPlugin
from ottla.topology_descriptions.in_topic import TopicPlugin
from ottla.topology_descriptions.plugin import (
    Broker,
    PermanentFailure,
    TopicTable,
    TopologyDescriptionPlugin,
    TransientFailure,
)

__all__ = [
    "Broker",
    "GlobalStore",
    "InMemoryPlugin",
    "Node",
    "PermanentFailure",
    "Processor",
    "Sink",
    "Source",
    "Subtopology",
    "TopicPlugin",
    "TopicTable",
    "TopologyDescription",
    "TopologyDescriptionPlugin",
    "TransientFailure",
    "from_json",
    "to_json",
]
