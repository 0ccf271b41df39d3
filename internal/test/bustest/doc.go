// Package bustest runs a bus for tests: its daemons in the test's process ([Start]) or as processes
// of their own ([StartProcess]), subscribers that keep the events they acknowledged, and publishers
// under load.
package bustest
