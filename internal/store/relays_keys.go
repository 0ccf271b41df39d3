package store

import (
	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Partition is a string: the partition's number and how many there are. See [rdb.PartitionKey].
func (k Keys) Partition() string { return k.Namespace + rdb.PartitionKey }

// RelayGeneration is a number that grows with each subscription in another partition.
func (k Keys) RelayGeneration() string { return k.Namespace + "relay:generation" }

// Deleting is a string that is there while a topic is being deleted: by whom, a UID. It expires.
func (k Keys) Deleting(topic bus.TopicName) string { return k.Namespace + "deleting:" + string(topic) }

// Outboxes is a hash of the number of each partition to which events of a topic are relayed, to the
// generation of the last subscription there.
func (k Keys) Outboxes(topic bus.TopicName) string { return k.Namespace + "relays:" + string(topic) }

// Outbox is a list of packed events, oldest first, on their way to the partition of a number.
func (k Keys) Outbox(to rdb.Number) string { return k.Namespace + "relay:" + to.String() }

// RelayTaken is a hash of the number of each partition to the head of its outbox that is being
// relayed: a UID, how many events, and since when (ms), with spaces between.
func (k Keys) RelayTaken() string { return k.Namespace + "relay:taken" }

// RelayCarried is a hash of the number of each partition to how many events have been carried
// there.
func (k Keys) RelayCarried() string { return k.Namespace + "relay:carried" }

// RelayStarts is a hash of a topic and a subscriber here, with a space between, to where its
// subscription starts in the outbox of the topic's home: the id and losses of that, and how many
// events have been put into that before, ever. It is there while events may be on their way that
// were published before. It expires.
func (k Keys) RelayStarts() string { return k.Namespace + "relay:starts" }

// Relayed is a list of the UIDs of the last relays that came from the partition of a number, latest
// first.
func (k Keys) Relayed(from rdb.Number) string { return k.Namespace + "relayed:" + from.String() }
