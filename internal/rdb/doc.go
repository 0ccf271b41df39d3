// Package rdb is the way to Redis, and knows no key: it turns a URL into connections, reports
// whether Redis is there, runs scripts and has what they changed confirmed by replicas, reads long
// keys a page at a time, and waits for lists. No other package imports go-redis.
//
// A [Client] is one Redis. A [Partition] is one complete layout of keys in it, under one prefix;
// everything that touches keys is given one and never looks beyond it.
//
// A call that fails because Redis is unavailable, or refuses it, fails with
// [bus.ErrUnavailable]. Nothing is sent twice by this package: a call whose answer was lost may
// have taken effect, and only its caller knows whether it can be repeated.
package rdb
