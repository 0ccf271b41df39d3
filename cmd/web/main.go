// Command web serves the HTTP API of the event bus.
package main

import (
	"os"

	"routemaster/internal/app"
)

func main() {
	os.Exit(app.Daemon("web", "serves the HTTP API of the event bus", os.Args[1:], os.Stdout, os.Stderr, app.RunWeb))
}
