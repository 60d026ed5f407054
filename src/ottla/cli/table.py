"""Every command of `ottla`, one line each. The summaries are here so that `ottla --help` imports no command."""

from ottla.cli.lazy import Entry

COMMANDS = {
    "acls": Entry("ottla.cli.acls:acls", "See and change who may do what, on any cluster."),
    "cluster": Entry(
        "ottla.cli.local_cluster:cluster", "Run a cluster of several nodes on this machine, and break it."
    ),
    "completion": Entry("ottla.cli.completion:completion", "Print a completion script for a shell."),
    "configs": Entry("ottla.cli.configs:configs", "Show and change settings and quotas, on any cluster."),
    "decode": Entry("ottla.cli.decode:decode", "Decode bytes or packet captures, field by field."),
    "demo": Entry("ottla.cli.demo:demo", "Break a small cluster three times, and find out why."),
    "docs": Entry("ottla.cli.docs:docs", "Build the pages about the protocol as a site."),
    "doctor": Entry("ottla.cli.doctor:doctor", "Check whether this machine has what ottla needs."),
    "dump": Entry("ottla.cli.dump:dump", "Show the files of a log directory, one JSON object per line."),
    "explain": Entry("ottla.cli.explain:explain", "Explain a message, record type, error or setting."),
    "groups": Entry("ottla.cli.groups:groups", "See and change groups of all types, on any cluster."),
    "health": Entry("ottla.cli.health:health", "Show what is wrong with any cluster, and what is healthy."),
    "messages": Entry("ottla.cli.messages:messages", "List messages and record types with their versions."),
    "nodes": Entry("ottla.cli.nodes:nodes", "Show the brokers of any cluster, and how full their disks are."),
    "console": Entry("ottla.cli.console:console", "Show any cluster in the browser."),
    "observe": Entry("ottla.cli.observe:observe", "Watch any cluster, and write samples of it."),
    "pipeline": Entry("ottla.cli.pipeline:pipeline", "Turn the internal topics of a cluster into tables and a report."),
    "proxy": Entry("ottla.cli.proxy:proxy", "Show the traffic between clients and a cluster, live."),
    "quorum": Entry("ottla.cli.quorum:quorum", "See and change the quorum of controllers, on any cluster."),
    "serve": Entry("ottla.cli.serve:serve", "Run a node: a broker that Kafka clients can use."),
    "share": Entry("ottla.cli.share:share", "See share groups and what they have in flight, on any cluster."),
    "storage": Entry("ottla.cli.storage:storage", "Format, show and check log directories."),
    "streams": Entry("ottla.cli.streams:streams", "See the groups of Kafka Streams applications, on any cluster."),
    "tokens": Entry("ottla.cli.tokens:tokens", "Create and end delegation tokens, on any cluster."),
    "topics": Entry("ottla.cli.topics:topics", "See, change, read and write topics, on any cluster."),
    "tour": Entry("ottla.cli.tour:tour", "Take a guided tour of ottla."),
    "users": Entry("ottla.cli.users:users", "See and change the users that log in with SCRAM, on any cluster."),
    "version": Entry("ottla.cli.version:version", "Show the versions of ottla, Python and the packages it uses."),
}
