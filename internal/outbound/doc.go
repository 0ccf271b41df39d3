// Package outbound sends requests to addresses that users chose, such as subscribers' callbacks. It
// decides what may be connected to, speaks TLS, keeps connections for reuse, bounds all that the
// other side can make it wait for or read, and returns what came of each attempt. It knows nothing
// of what it sends, and nothing of what is done about a failure.
package outbound
