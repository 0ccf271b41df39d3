// Package chaos is the fault test: it publishes and subscribes while processes are killed, Redis
// hangs and links lose bytes, and then counts. It has no code of its own.
package chaos
