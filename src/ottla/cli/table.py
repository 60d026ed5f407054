"""Every command of `ottla`, one line each. The summaries are here so that `ottla --help` imports no command."""

from ottla.cli.lazy import Entry

COMMANDS = {
    "acls": Entry("ottla.cli.acls:acls", "List and change ACLs, on any cluster."),
    "cluster": Entry("ottla.cli.local_cluster:cluster", "Run a local cluster, and simulate failures."),
    "completion": Entry("ottla.cli.completion:completion", "Print a shell-completion script."),
    "configs": Entry("ottla.cli.configs:configs", "Show and change settings and quotas, on any cluster."),
    "decode": Entry("ottla.cli.decode:decode", "Decode bytes or packet captures, field by field."),
    "demo": Entry("ottla.cli.demo:demo", "Run a small cluster through three incidents, and explain them."),
    "docs": Entry("ottla.cli.docs:docs", "Build the protocol reference as a site."),
    "doctor": Entry("ottla.cli.doctor:doctor", "Check whether this machine has what ottla needs."),
    "dump": Entry("ottla.cli.dump:dump", "Dump files of a log directory, one JSON object per line."),
    "explain": Entry("ottla.cli.explain:explain", "Explain a message, record type, error or setting."),
    "groups": Entry("ottla.cli.groups:groups", "List, describe, reset and delete groups, on any cluster."),
    "health": Entry("ottla.cli.health:health", "Check the health of any cluster."),
    "messages": Entry("ottla.cli.messages:messages", "List messages and record types with their versions."),
    "nodes": Entry("ottla.cli.nodes:nodes", "Show the brokers of any cluster and their disk usage."),
    "console": Entry("ottla.cli.console:console", "Show any cluster in the browser."),
    "observe": Entry("ottla.cli.observe:observe", "Watch any cluster, and record samples."),
    "pipeline": Entry("ottla.cli.pipeline:pipeline", "Turn the internal topics of a cluster into tables and a report."),
    "proxy": Entry("ottla.cli.proxy:proxy", "Show the traffic between clients and a cluster."),
    "quorum": Entry("ottla.cli.quorum:quorum", "Describe and change the controller quorum, on any cluster."),
    "serve": Entry("ottla.cli.serve:serve", "Run a node: a broker that Kafka clients can use."),
    "share": Entry("ottla.cli.share:share", "Inspect and reset share groups, on any cluster."),
    "storage": Entry("ottla.cli.storage:storage", "Format, inspect and check log directories."),
    "streams": Entry("ottla.cli.streams:streams", "Inspect Kafka Streams groups, on any cluster."),
    "tokens": Entry("ottla.cli.tokens:tokens", "Create, renew and expire delegation tokens, on any cluster."),
    "topics": Entry("ottla.cli.topics:topics", "Manage, read and write topics, on any cluster."),
    "tour": Entry("ottla.cli.tour:tour", "Take a guided tour of ottla."),
    "users": Entry("ottla.cli.users:users", "Manage SCRAM users, on any cluster."),
    "version": Entry("ottla.cli.version:version", "Show the versions of ottla, Python and the packages it uses."),
}
