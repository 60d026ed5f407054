"""Every command of `ottla`, one line each, in the order and under the headings of `ottla --help`.

The summaries are here so that `ottla --help` imports no command.
"""

from ottla.cli.lazy import Entry

RUN = "Run Kafka"
CLUSTER = "Work with any cluster"
OBSERVE = "See what is going on"
PROTOCOL = "Understand the protocol"
ABOUT = "About ottla"

COMMANDS = {
    "serve": Entry("ottla.cli.serve:serve", "Run a node: a broker that Kafka clients can use.", RUN),
    "cluster": Entry("ottla.cli.local_cluster:cluster", "Run a local cluster, and simulate failures.", RUN),
    "storage": Entry("ottla.cli.storage:storage", "Format, inspect and check log directories.", RUN),
    "demo": Entry("ottla.cli.demo:demo", "Run a small cluster through three incidents, and explain them.", RUN),
    "tour": Entry("ottla.cli.tour:tour", "Take a guided tour of ottla.", RUN),
    "topics": Entry("ottla.cli.topics:topics", "Manage, read and write topics, on any cluster.", CLUSTER),
    "load": Entry("ottla.cli.load:load", "Write records at a rate, and measure latency, on any cluster.", CLUSTER),
    "groups": Entry("ottla.cli.groups:groups", "List, describe, reset and delete groups, on any cluster.", CLUSTER),
    "share": Entry("ottla.cli.share:share", "Inspect and reset share groups, on any cluster.", CLUSTER),
    "streams": Entry("ottla.cli.streams:streams", "Inspect Kafka Streams groups, on any cluster.", CLUSTER),
    "configs": Entry("ottla.cli.configs:configs", "Show and change settings and quotas, on any cluster.", CLUSTER),
    "nodes": Entry("ottla.cli.nodes:nodes", "Show the brokers of any cluster and their disk usage.", CLUSTER),
    "quorum": Entry("ottla.cli.quorum:quorum", "Describe and change the controller quorum, on any cluster.", CLUSTER),
    "acls": Entry("ottla.cli.acls:acls", "List and change ACLs, on any cluster.", CLUSTER),
    "users": Entry("ottla.cli.users:users", "Manage SCRAM users, on any cluster.", CLUSTER),
    "tokens": Entry("ottla.cli.tokens:tokens", "Create, renew and expire delegation tokens, on any cluster.", CLUSTER),
    "profile": Entry("ottla.cli.profile:profile", "Name clusters, to choose them with --profile.", CLUSTER),
    "health": Entry("ottla.cli.health:health", "Check the health of any cluster.", OBSERVE),
    "observe": Entry("ottla.cli.observe:observe", "Watch any cluster, and record samples.", OBSERVE),
    "console": Entry("ottla.cli.console:console", "Show any cluster in the browser.", OBSERVE),
    "pipeline": Entry(
        "ottla.cli.pipeline:pipeline", "Turn the internal topics of a cluster into tables and a report.", OBSERVE
    ),
    "proxy": Entry("ottla.cli.proxy:proxy", "Show the traffic between clients and a cluster.", OBSERVE),
    "explain": Entry("ottla.cli.explain:explain", "Explain a message, record type, error or setting.", PROTOCOL),
    "messages": Entry("ottla.cli.messages:messages", "List messages and record types with their versions.", PROTOCOL),
    "decode": Entry("ottla.cli.decode:decode", "Decode bytes or packet captures, field by field.", PROTOCOL),
    "dump": Entry("ottla.cli.dump:dump", "Dump files of a log directory, one JSON object per line.", PROTOCOL),
    "docs": Entry("ottla.cli.docs:docs", "Build the protocol reference as a site.", PROTOCOL),
    "doctor": Entry("ottla.cli.doctor:doctor", "Check whether this machine has what ottla needs.", ABOUT),
    "completion": Entry("ottla.cli.completion:completion", "Print a shell-completion script.", ABOUT),
    "version": Entry(
        "ottla.cli.version:version", "Show the versions of ottla, Python and the packages it uses.", ABOUT
    ),
}
