// Package web is the HTTP API. [API.Handler] has all routes, but for those about one client's
// subscription, which package subscriber adds, and those about jobs, which package jobs adds. Each
// resource has a file with its handlers, the JSON it takes and the JSON it returns. Package rest
// has what the handlers share, package auth authenticates requests, package server serves
// connections.
//
// openapi.json documents the API. It is written by hand; the tests check every route and every
// response they see against it.
package web
