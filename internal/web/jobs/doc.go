// Package jobs is the part of the HTTP API that is about jobs and their types: work that exactly
// one service has to do, and report on. Its paths, fields and error ids are those of the job queue
// that this one takes the place of. [Handlers.Routes] has the routes; each resource has a file with
// its handlers, the JSON it takes and the JSON it returns.
package jobs
