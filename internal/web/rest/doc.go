// Package rest is the layer that the handlers of the HTTP API share: middleware, JSON bodies in,
// JSON and problem documents out. It knows no resource. Errors of the packages below become
// responses in one place, problem.go.
package rest
