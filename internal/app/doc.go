// Package app turns the environment into a [Config] and wires the daemons from the other packages:
// [RunWeb] and [RunWorker]. [Daemon] runs one of them as a program.
//
// Each daemon is wired from the bottom up (Redis, store, telemetry, the daemon's own parts) and
// stopped in reverse order. So requests and deliveries under way end while everything that they use
// still works; then the telemetry sends what it still has, which needs Redis; then the connections
// to Redis close.
package app
