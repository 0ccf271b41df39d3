// Package outbound sends requests to addresses that users chose, such as subscribers' callbacks. It
// decides which addresses may be connected to, speaks TLS, keeps connections for reuse, bounds how
// long it waits and how much it reads, and returns the result of each attempt. It knows nothing
// about the content of requests, and does not decide the consequences of a failure.
package outbound
