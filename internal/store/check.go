package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/wire"
)

// Violation is something in Redis that contradicts the data layout's invariants. It shows clients by name, never a token.
type Violation struct {
	Key     string
	Problem string
	// Remedy is what was done about it or, if it was not fixed, what would be; empty if it is left alone.
	Remedy string
	Fixed  bool
}

func (v Violation) String() string { return v.Key + ": " + v.Problem }

// Census is what an examination has read.
type Census struct {
	Batches, Jobs, Subscribers, Topics int
	// Failing is how many subscribers have failed since their last success.
	Failing int
	// Unchecked names what changed too fast to be checked.
	Unchecked []string
}

// Examine reads all keys of the namespace, a slice at a time, and tells what is wrong between them:
//
//   - a batch has its list and its index entry, a subscriber, and exactly one job in exactly one state;
//   - the index of a queue's jobs is the union of the three states;
//   - a worker has at most one pending job, and is in the index of those that may have one;
//   - a current batch is listed under its own subscriber, one at a time, and so is one in line;
//   - the first in line does not wait for its turn;
//   - gauges equal what is there;
//   - topics and subscribers name each other;
//   - there is no key that the layout does not know.
//
// It may run while the bus does. What it reads is no snapshot, so what looks wrong is only a suspect; a script
// then looks at that one thing, in one atomic step, and what it confirms is told. With fix, the same step repairs
// it, unless that might take an event from somebody who is still to receive it. What cannot be judged is left alone:
// unknown keys, jobs that cannot be read, and all that belongs to batches of the Ruby original. So are keys that are only named like
// those of the bus, for Redis may have other users: what the bus would not write there, and what nothing of the bus knows.
func (s *Store) Examine(ctx context.Context, fix bool, tell func(Violation)) (Census, error) {
	e := &examination{survey: newSurvey(s), fix: fix, tell: tell, leftAlone: map[Violation]bool{}, foreign: map[string]bool{}}
	for _, step := range []func(context.Context) error{
		s.refuseCluster,
		e.checkSingleKeys, // without which nothing else can be read
		e.read,
		e.checkKeys,
		e.checkTopics,
		e.checkSubscribers,
		e.checkSubscriptions,
		e.checkJobs,
		e.checkListed,
		e.checkWorkers,
		e.checkGauges, // which a repair may have changed
	} {
		if err := step(ctx); err != nil {
			return e.census(), err
		}
		if e.unreadable {
			break
		}
	}
	return e.census(), nil
}

// errCluster says that nothing is to be expected of this Redis.
var errCluster = errors.New("this Redis is a node of a Redis Cluster, which the bus does not support")

// refuseCluster fails on a node of a Redis Cluster, where a part of the keys is at most. The embedded engine does not say what it is.
func (s *Store) refuseCluster(ctx context.Context) error {
	is, err := s.redis.Client().IsClusterNode(ctx)
	if is {
		return errCluster
	}
	return err
}

// examination is one run of the checks.
type examination struct {
	*survey
	fix  bool
	tell func(Violation)
	// unreadable is set when a key that everything depends on is not of its type.
	unreadable bool
	unchecked  []string
	// leftAlone is what was told of and is left alone.
	leftAlone map[Violation]bool
	// foreign are sets that are only named like one side of the subscriptions.
	foreign map[string]bool
}

func (e *examination) census() Census {
	c := Census{Subscribers: len(e.subscribers), Topics: len(e.topics), Unchecked: e.unchecked}
	for token := range e.failing {
		if e.subscribers[token] { // a foreign key may only be named like a subscriber's
			c.Failing++
		}
	}
	for _, b := range e.batches {
		if b.there {
			c.Batches++
		}
	}
	for _, q := range bus.Queues {
		c.Jobs += len(e.queues[q].jobs)
	}
	return c
}

// found tells a violation that has a remedy.
func (e *examination) found(key, remedy, format string, args ...any) {
	v := Violation{Key: e.show(key), Problem: fmt.Sprintf(format, args...), Remedy: remedy, Fixed: e.fix && remedy != ""}
	if remedy == "" { // one key may be found for many reasons
		if e.leftAlone[v] {
			return
		}
		e.leftAlone[v] = true
	}
	e.tell(v)
}

// leave tells a violation that is left alone.
func (e *examination) leave(key, format string, args ...any) { e.found(key, "", format, args...) }

// show is a key without its namespace, and with a client's name for its token.
func (e *examination) show(key string) string {
	key = strings.TrimPrefix(key, e.keys.Namespace)
	k := Keys{}
	for _, prefix := range []string{k.Subscriber(""), k.SubscriberTopics(""), k.Current(""), queue.Keys{}.Lane(bus.JobBatch, "")} {
		if token, ok := strings.CutPrefix(key, prefix); ok {
			return prefix + e.name(token)
		}
	}
	for i := range len(key) { // a key that the layout does not know may have a token all the same
		if key[i] == ':' && e.isToken(key[i+1:]) {
			return key[:i+1] + e.name(key[i+1:])
		}
	}
	return key
}

func (e *examination) isToken(text string) bool {
	_, known := e.names[text]
	return known || e.subscribers[text]
}

// name is a client's name, which does not tell its token. What can be no token is shown as it is.
func (e *examination) name(token string) string {
	if bus.Token(token).Validate() != nil && !e.isToken(token) {
		return token
	}
	return string(bus.PublicName(bus.Token(token), bus.ClientName(e.names[token])))
}

// showJob is a job as its name and arguments, or as its bytes when it cannot be read.
func showJob(packed string) string {
	job, err := wire.UnpackJob(packed)
	if err != nil {
		return fmt.Sprintf("%q", packed)
	}
	return fmt.Sprintf("%q", append([]string{string(job.Name)}, job.Args...))
}
