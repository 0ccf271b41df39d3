package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"routemaster/internal/rdb/rdbtest"
)

// TestScripts runs the scripts of testdata/script, each with a bus of its own. Besides testscript's
// variables they have $BUS and $SECURE_BUS, the bus's URLs, $STRICT_BUS, the URL of a bus that
// requires TLS, $CA, the file with the certificate of the latter, and $ROOT, the root key. The home
// directory is $HOME, empty at first.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal("there are no scripts", err)
	}
	rtm := installRtm(t)
	// The other commands do one thing after the other, and the race detector has nothing to find.
	concurrent := []string{"pub", "tail", "top"}
	for _, script := range scripts {
		name := strings.TrimSuffix(filepath.Base(script), ".txtar")
		if rdbtest.RaceDetector && !slices.Contains(concurrent, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()       // a bus that waits for its turn takes CPU time too, so it has none before
			bus := startBus(t) // first, so that a missing Redis skips the test
			testscript.Run(t, testscript.Params{
				Files:               []string{script},
				RequireExplicitExec: true,
				Setup: func(env *testscript.Env) error {
					home := filepath.Join(env.WorkDir, "home")
					env.Setenv("PATH", rtm+string(os.PathListSeparator)+env.Getenv("PATH"))
					env.Setenv("HOME", home)
					env.Setenv("GORACE", os.Getenv("GORACE"))
					env.Setenv("BUS", bus.url)
					env.Setenv("SECURE_BUS", bus.secureURL)
					env.Setenv("STRICT_BUS", bus.strictURL)
					env.Setenv("CA", bus.ca)
					env.Setenv("ROOT", rootKey)
					return os.MkdirAll(home, 0o700)
				},
			})
		})
	}
}
