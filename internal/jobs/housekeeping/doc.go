// Package housekeeping does what jobs need besides being done: it enqueues those of schedules, has
// the archive removed in time or when Redis fills up, and counts what there is. Every worker does
// it; each step in Redis is done once, by the first that comes.
package housekeeping
