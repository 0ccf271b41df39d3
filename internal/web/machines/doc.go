// Package machines is the part of the HTTP API that is about state machines and their labels. Its
// paths and bodies are those of the service that this one takes the place of, and more.
// [Handlers.Routes] has the routes; each resource has a file with its handlers, the JSON it takes
// and the JSON it returns.
package machines
