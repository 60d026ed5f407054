"""Streams groups (KIP-1071): Kafka Streams applications whose tasks the broker hands out.

A *task* is one partition of a subtopology. A *member* is a stream thread, a *process* an instance of the application
with its state directory; several members share a process. Modules, from the inside out:

====================  ==============================================================================================
`tasks`               sets of tasks, as the coordinator thinks and as messages say them
`topology`            what an application declares that it reads, stores and writes
`configuration`       a topology against the topics that exist: partition counts, numbers of tasks, missing topics
`sticky`              the default assignor: which member should run which task
`highly_available`    the assignor that moves a task only once its new owner has the task's state
`assignment`          what the assignors are told, and when there is a further step to take
`reconciliation`      how a member moves towards its target without a task ever running twice
`members`, `group`    the state, and how records change it
`records`             the records, as Kafka writes them
`settings`            a group's settings
`validation`          which heartbeats are refused before anything is looked up
`heartbeat`           one heartbeat, from the member's epoch to the answer
`effects`             what is asked of the edge
`internal_topics`     internal topics: what is asked for, under way, or has failed
`endpoints`           who answers interactive queries
`group_description`   StreamsGroupDescribe
`description_*`       topology descriptions (KIP-1331): asked for, updated, queried
`back_off`            how long a group waits before it asks for a description again
`family`              all of it behind the interface of the group coordinator
====================  ==============================================================================================
"""
