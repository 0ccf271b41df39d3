package queue

import (
	"strings"
	"time"
)

// Owner names whose work a task is, as far as threads are shared among owners. The first owner of a
// task is its lane's own, as a subscriber, a job type or a state of a machine; the others have
// several of these together, as a machine and the host of a URL.
type Owner string

// hostPrefix begins the names of hosts, and of no other owner.
const hostPrefix = "@"

// IsHost reports whether an owner is the host of a URL.
func (o Owner) IsHost() bool { return strings.HasPrefix(string(o), hostPrefix) }

// HostOwner is the owner of the requests to a URL: its host with the port, as host_owner of
// lua/lib/acquire.lua names it; empty if the URL has none.
func HostOwner(url string) Owner {
	scheme, rest, found := strings.Cut(url, "://")
	if !found || scheme != "http" && scheme != "https" {
		return ""
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	host := strings.TrimSuffix(strings.ToLower(rest[strings.LastIndexByte(rest, '@')+1:]), ":443")
	if host == "" {
		return ""
	}
	return Owner(hostPrefix + host)
}

// Full is an owner whose entries a worker does not take now.
type Full struct {
	Owner Owner
	// Recheck is for how long such an entry is put off. If it is zero, the owner's entries are taken,
	// even if another of their owners is full.
	Recheck time.Duration
}
