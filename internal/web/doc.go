// Package web is the HTTP API. [API.operations] is the table of its operations: each row defines a
// route, the query that it allows, and its part of openapi.json. Each resource has a file with its
// rows, its handlers, the JSON it takes and the JSON it returns. Package rest has the handlers'
// shared code, authenticates requests and serves connections.
//
// openapi.json documents the API. A test generates it from the table, from the types of requests
// and responses with the comments of their fields, and from testdata/openapi-by-hand.json: the
// schemas there that have a type are still to move to it. Other tests check every route and every
// response they see against it.
package web
