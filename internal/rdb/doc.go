// Package rdb connects to Redis, and knows only one key: it turns a URL into connections, reports
// whether Redis is available, runs scripts and makes replicas confirm their changes, reads long
// keys a page at a time, and waits for lists. No other package imports go-redis.
//
// A [Client] is one Redis, or a Redis Cluster. A [Partition] is one complete layout of keys in it,
// under one prefix; all code that touches keys gets a partition and never looks beyond it. A bus on
// one Redis has one; [Partitions] are all partitions of a bus that has several, and say which one
// has a topic or a subscriber. On a cluster, all keys of a partition have one slot. Calls go to the
// client of the node that has the slot, never to a client of the whole cluster.
//
// A call that fails because Redis is unavailable, or refuses it, fails with [bus.ErrUnavailable].
// This package never sends a call twice: a call whose reply was lost may have taken effect, and
// only its caller knows whether it can be repeated. A node of a cluster that answers MOVED has not
// run the call, so it goes on to the other node.
package rdb
