package engine

import "routemaster/internal/machines"

// Keys are the keys of machines and labels in a partition, one method a key; their entries stand in
// the queue's. lua/lib/keys.lua says the same to the scripts; a test holds the two together.
type Keys struct{ Namespace string }

// Definitions is a hash: the YAML of all machines, its version, and the moves that are not over.
func (k Keys) Definitions() string { return k.Namespace + "machines:definitions" }

// Walks is a hash of the walks of timed triggers to what is noted of each.
func (k Keys) Walks() string { return k.Namespace + "machines:walks" }

// Label is a hash of a label.
func (k Keys) Label(machine machines.Name, name machines.LabelName) string {
	return k.Namespace + "machines:label:" + string(machine) + "/" + string(name)
}

// Metadata is a label's metadata, JSON.
func (k Keys) Metadata(machine machines.Name, name machines.LabelName) string {
	return k.Namespace + "machines:metadata:" + string(machine) + "/" + string(name)
}

// History is a list of a label's moves, JSON, the latest first.
func (k Keys) History(machine machines.Name, name machines.LabelName) string {
	return k.Namespace + "machines:history:" + string(machine) + "/" + string(name)
}

// Names is a sorted set of the names of all labels of a machine that are not deleted, all of score
// 0.
func (k Keys) Names(machine machines.Name) string {
	return k.Namespace + "machines:names:" + string(machine)
}

// Labels is a sorted set of the names of the labels in a state, all of score 0.
func (k Keys) Labels(machine machines.Name, state machines.StateName) string {
	return k.Namespace + "machines:labels:" + string(machine) + ":" + string(state)
}

// Errored is a sorted set of the names of a machine's labels that are errored, all of score 0.
func (k Keys) Errored(machine machines.Name) string {
	return k.Namespace + "machines:errored:" + string(machine)
}

// Outbox is a list of a machine's moves that are to be published, the oldest first.
func (k Keys) Outbox(machine machines.Name) string {
	return k.Namespace + "machines:outbox:" + string(machine)
}

// Published is a hash: how many moves of a machine came into its outbox, and which are published.
func (k Keys) Published(machine machines.Name) string {
	return k.Namespace + "machines:published:" + string(machine)
}

// Standings is a hash of a machine's states to the standing of their webhooks and feeds.
func (k Keys) Standings(machine machines.Name) string {
	return k.Namespace + "machines:standings:" + string(machine)
}
