"""What consumer, streams and share groups have in common. Apache Kafka calls them modern groups.

Theory of operation. Members send heartbeats, and the coordinator computes who gets what (KIP-848). Three epochs tell
how far a group has come:

* the *group epoch* grows with everything that an assignment depends on: members, subscriptions, topics;
* the *assignment epoch* is the group epoch that the *target* was computed for. While it is smaller than the group
  epoch, a heartbeat computes a new target, at most one in an assignment interval;
* a *member epoch* is the assignment epoch that a member has reached.

From a request to records. `ModernFamily.heartbeat` takes every heartbeat. One that is remembered as steady is answered
at once. Any other one is checked, and then either removes its member or becomes a `HeartbeatStep`: the step finds the
member, takes over what the member says of itself, raises the group epoch if it must, computes a target if one is due,
and moves the member towards its target. A step reads the group and gathers records and timers; each of its parts
looks at what the parts before it have decided, since nothing of that is replayed yet. A large target is computed
outside the event loop, after the heartbeat (`target_jobs`).

From records to the group. `ModernReplay` has one table for each kind of group: class of key -> method of the group.
It makes the group that a record speaks of if there is none, and removes it with the tombstone of its own record.

Steady heartbeats. A heartbeat that changes nothing is by far the most frequent request. The group remembers the last
such heartbeat of each member with its answer (`Steady`). The same heartbeat again costs a comparison and a moved
deadline. The answer depends on three things, and each has one place where it is looked after:

* the request, the client, the settings and the time: `ModernFamily.heartbeat` compares them;
* the group's records: `ModernReplay` calls `ModernGroup.changed` for every record, whatever it says;
* soft state: topics, for which `ModernFamily.topics_changed` calls `changed`, and what a kind of group has of its own,
  which calls `changed` in the method that sets it.

Rights. Each family has a `check_heartbeat`, which handlers call before they look for the coordinator: READ on the
group, DESCRIBE on each topic that the request names (`rights`). What a group needs beyond that (topics that match a
pattern, topics to be created) its step asks through `Context.authorize`.

A kind of group is one folder, with

=============  =======================================================================================================
`settings`     `read_settings`, and a `Settings` that satisfies `ModernSettings`
`members`      a member that satisfies `ModernMember`
`validation`   `check_heartbeat`, and which epochs are fenced
`records`      values to records and back
`group`        a `ModernGroup`: what the records say, and what every kind of group can be asked
`heartbeat`    a `HeartbeatStep`
`family`       a `ModernFamily`: its requests, the table of its records, its deadlines
=============  =======================================================================================================
"""
