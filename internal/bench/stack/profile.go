package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// profiles takes profiles of the daemons, which serve them beside their metrics.
type profiles struct {
	directory string // empty for no profiles
	// at has the address where each daemon serves its own.
	at map[string]string
	// taken numbers the files.
	taken int
}

func newProfiles(directory string) profiles {
	return profiles{directory: directory, at: map[string]string{}}
}

// of reports whether profiles of a program are taken.
func (p *profiles) of(name string) bool {
	return p.directory != "" && (name == Web || name == Worker)
}

// Profile begins to take CPU profiles of the daemons that run, for so long, rounded to seconds, if
// the stack takes profiles. The function that it returns waits for them, and takes the heaps: what
// was allocated since the process began, and what is in use.
func (s *Stack) Profile(ctx context.Context, scenario, label string, length time.Duration) (finish func() error) {
	p := &s.profiles
	p.taken++
	file := func(name, kind string) string {
		return filepath.Join(p.directory, fmt.Sprintf("%s-%02d-%s.%s.%s.pb.gz", scenario, p.taken, label, name, kind))
	}
	seconds := max(1, int(length.Round(time.Second).Seconds()))
	group, cpuCtx := errgroup.WithContext(ctx)
	var names []string
	for name := range p.at {
		if s.running[name] == nil {
			continue
		}
		names = append(names, name)
		group.Go(func() error {
			return p.take(cpuCtx, name, fmt.Sprintf("profile?seconds=%d", seconds), file(name, "cpu"))
		})
	}
	return func() error {
		err := group.Wait()
		for _, name := range names {
			err = errors.Join(err, p.take(ctx, name, "heap", file(name, "heap")))
		}
		return err
	}
}

func (p *profiles) take(ctx context.Context, name, profile, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.at[name]+"/debug/pprof/"+profile, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s responded %s to a request for its profile", name, resp.Status)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.directory, 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}
