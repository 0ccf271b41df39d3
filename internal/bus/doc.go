// Package bus holds the vocabulary and the rules of the event bus. It imports nothing of ours
// and does no I/O.
//
// # Glossary
//
//   - An event says that a thing, named by its URL, was created, updated or deleted, or is
//     merely there ("noop").
//   - A topic is a named stream of events. The first client that publishes to it owns it.
//   - A client is a program that holds a [Token]. Its name is public; its token is a secret.
//     A client that publishes to a topic is the topic's publisher, and one that subscribes to
//     topics is a subscriber. A subscriber has one callback for all of its topics.
//   - A batch is a list of events for one subscriber. It is delivered by one POST to the
//     callback.
//   - A job is a unit of work in a queue: "deliver this batch" in [QueueMain], housekeeping in
//     [QueueAux]. A queue has a job at most once.
//   - A worker, in the data layout, is one thread of a worker process. It has at most one
//     pending job.
//   - A lane bounds the jobs of one kind that are in flight, and keeps their order. Each
//     subscriber is a lane. The head of a lane is its next batch; when a delivery ends, the
//     head is woken.
//   - A kind of job has a payload or a lane, and adds its own part to the atomic steps of the
//     queue. Batches are one.
//   - Max in flight is the maximum number of batches of one subscriber that are delivered at
//     the same time.
//   - To scrub is to requeue the jobs of dead workers. To autodrop is to drop the oldest
//     batches when Redis is about to be full.
//   - Health points, from [MinHealth] to [MaxHealth], say how reliably a subscriber
//     acknowledges.
//   - A batch is refused when the endpoint is well but does not take this batch: see
//     [BatchFailure].
//   - The standing of a subscriber predicts its next delivery from its last one: see [Standing].
//   - A throttled subscriber has failed and is sent nothing for a while: see [Throttle] and
//     [RefusalThrottle].
//   - An idempotency key names a publish, so that a publisher can repeat it and it is stored
//     once.
//   - The pulse says whether the bus works; the scaling pulse, whether its workers keep up.
//   - The Ruby original is the system of the same name, written in Ruby. Its clients work
//     unchanged with this one, which takes over its data.
//   - The founding layout is the keys in Redis, and their fields, that are documented since the
//     Ruby original. Operators' scripts read them. Other keys are our own.
//   - A partition is one complete layout in Redis, under one namespace, a prefix of all its keys.
//     A process uses one.
//
// # Life of a batch
//
//	           full, or acquired            delivered, or dropped
//	current  --------------------->  ready  --------------------->  (deleted)
//
// A current batch takes in new events. A subscriber has at most one. It is due when it is full,
// or when the subscriber's timeout has passed since the batch was opened. While a due batch
// waits for its turn in the lane it stays current, and takes in more events.
//
// # Life of a job
//
//	            schedule              acquire              complete
//	scheduled  ---------->  instant  --------->  pending  ---------->  (deleted)
//	    ^                      ^                    |
//	    |                      '---- scrub ---------|  its worker died
//	    '--------------------------- retry ---------'  its backoff, or its turn in the lane
//
// # Standing of a subscriber
//
//	           acknowledged
//	Untried  ---------------->  Proven
//	 |   ^                       |  ^
//	 |   |                failed |  | acknowledged
//	 |   |                       v  |
//	 |   '--------------------- Failing
//	 |      subscribes again       ^
//	 '-----------------------------'
//	              failed
//
// Each acknowledged batch adds health points, and each failed one takes some. A failing
// subscriber is throttled after each [EndpointFailure], the longer the lower its health, and
// after many [BatchFailure]s in a row. While it is throttled its batches wait in the lane. Then
// one is tried: a success ends the throttle for all of them.
package bus
