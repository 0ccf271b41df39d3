// Package subscriber is the part of the HTTP API that is about one client's subscription: its
// settings, queued batches, attempts, dead letters, replays and signing secrets. A client reaches
// its own, and root anybody's. [Handlers.Routes] has the routes; each resource has a file with its
// handlers, the JSON it takes and the JSON it returns.
package subscriber
