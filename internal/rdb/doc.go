// Package rdb is the way to Redis, and knows no key but one: it turns a URL into connections,
// reports whether Redis is there, runs scripts and has what they changed confirmed by replicas,
// reads long keys a page at a time, and waits for lists. No other package imports go-redis.
//
// A [Client] is one Redis, or a Redis Cluster. A [Partition] is one complete layout of keys in it,
// under one prefix; everything that touches keys is given one and never looks beyond it. A bus on
// one Redis has one; [Partitions] are those of a bus that has several, and say which has a topic or
// a subscriber. On a cluster, all keys of a partition have one slot. What is asked of it goes to
// the client of the node that has the slot, never to a client of the whole cluster.
//
// A call that fails because Redis is unavailable, or refuses it, fails with
// [bus.ErrUnavailable]. Nothing is sent twice by this package: a call whose answer was lost may
// have taken effect, and only its caller knows whether it can be repeated. A node of a cluster that
// answers MOVED has not run the call: that goes on to the other node.
package rdb
