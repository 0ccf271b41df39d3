package bustest

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// daemonVariable makes a test binary run as the daemon that it names.
const daemonVariable = "TEST_ROUTEMASTER_DAEMON"

// AheadVariable says how far ahead the clock of a daemon's host is.
const AheadVariable = "TEST_ROUTEMASTER_CLOCK_AHEAD"

// Main is the TestMain of packages that call [StartProcess]: started again as a daemon, the test
// binary runs that; else it runs the tests, and fails them if a goroutine is left.
func Main(m *testing.M, ignore ...goleak.Option) {
	runDaemon()
	rdbtest.Main(m, ignore...)
}

// MainWithCluster is [Main] with [storetest.MainWithCluster].
func MainWithCluster(m *testing.M) {
	runDaemon()
	storetest.MainWithCluster(m)
}

// runDaemon runs the daemon that this process was started as, if it was, and ends the process.
func runDaemon() {
	switch os.Getenv(daemonVariable) {
	case "web":
		os.Exit(app.Daemon("web", "a test", nil, os.Stdout, os.Stderr, onItsHost(app.RunWeb)))
	case "worker":
		os.Exit(app.Daemon("worker", "a test", nil, os.Stdout, os.Stderr, onItsHost(app.RunWorker)))
	}
}

// daemon is a function that [app.Daemon] runs.
type daemon = func(context.Context, app.Config, *slog.Logger) error

// onItsHost makes a daemon use the clock of its host.
func onItsHost(run daemon) daemon {
	ahead, err := time.ParseDuration(os.Getenv(AheadVariable))
	if err != nil {
		return run
	}
	return func(ctx context.Context, c app.Config, log *slog.Logger) error {
		c.Wall = func() time.Time { return time.Now().Add(ahead) }
		return run(ctx, c, log)
	}
}
