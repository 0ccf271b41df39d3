// Package chaos is the fault test: it publishes and subscribes while processes are killed, Redis
// hangs and connections lose bytes, and then counts. It has no code of its own.
package chaos
