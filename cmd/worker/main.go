// Command worker delivers batches of events and runs the bus's other jobs.
package main

import (
	"os"

	"routemaster/internal/app"
)

func main() {
	os.Exit(app.Daemon("worker", "delivers batches of events and runs the bus's other jobs", os.Args[1:], os.Stdout, os.Stderr, app.RunWorker))
}
