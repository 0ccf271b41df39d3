// Package outbound sends requests to addresses that users chose, such as subscribers' callbacks. It
// decides what may be connected to, speaks TLS, keeps connections for reuse, bounds how long it
// waits and how much it reads, and returns the result of each attempt. It knows nothing about the
// content of requests, and does not decide what follows from a failure.
package outbound
