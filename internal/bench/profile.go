package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// profiler takes profiles of the daemons, which serve them beside their metrics.
type profiler struct {
	directory string
	// at is where each daemon that runs serves its own.
	at   map[string]string
	http *http.Client
	// rows counts those profiled, so that no two have the same files.
	rows int
}

// newProfiler makes one that writes into a directory, or nil for none.
func newProfiler(directory string) (*profiler, error) {
	if directory == "" {
		return nil, nil
	}
	return &profiler{directory: directory, at: map[string]string{}, http: &http.Client{}}, os.MkdirAll(directory, 0o755)
}

// serve is the setting that has a daemon serve its profiles.
func (p *profiler) serve(name string) (env []string, err error) {
	if p == nil || name != Web && name != Worker {
		return nil, nil
	}
	if p.at[name], err = freeAddress(); err != nil {
		return nil, err
	}
	return []string{"ROUTEMASTER_METRICS_ADDR=" + p.at[name]}, nil
}

// during begins to take CPU profiles of the daemons that run, for so long, rounded to seconds. The function that
// it returns waits for them, and takes the heaps: of what was allocated since the process began, and of what is in use.
func (s *site) during(ctx context.Context, label string, length time.Duration) (finish func() error) {
	if s.own == nil || s.own.profiler == nil {
		return func() error { return nil }
	}
	p := s.own.profiler
	p.rows++
	label = fmt.Sprintf("%02d-%s", p.rows, label)
	seconds := max(1, int(length.Round(time.Second).Seconds()))
	group, ctx := errgroup.WithContext(ctx)
	var names []string
	for name := range p.at {
		if s.own.running[name] == nil {
			continue
		}
		names = append(names, name)
		group.Go(func() error {
			return p.take(ctx, name, fmt.Sprintf("profile?seconds=%d", seconds), p.file(s.table.Scenario, label, name, "cpu"))
		})
	}
	return func() error {
		err := group.Wait()
		for _, name := range names {
			err = errors.Join(err, p.take(context.WithoutCancel(ctx), name, "heap", p.file(s.table.Scenario, label, name, "heap")))
		}
		return err
	}
}

func (p *profiler) file(scenario, label, name, kind string) string {
	return filepath.Join(p.directory, fmt.Sprintf("%s-%s.%s.%s.pb.gz", scenario, label, name, kind))
}

func (p *profiler) take(ctx context.Context, name, profile, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.at[name]+"/debug/pprof/"+profile, nil)
	if err != nil {
		return err
	}
	answer, err := p.http.Do(req)
	for tries := 0; errors.Is(err, syscall.ECONNREFUSED) && tries < 1000; tries++ { // it has just been started
		if err = sleep(ctx, 2*time.Millisecond); err == nil {
			answer, err = p.http.Do(req)
		}
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s for its profile", name, answer.Status)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// label names a trial in the name of a file.
func (t trial) label() string {
	label := fmt.Sprintf("%d-to-%d", t.publishers, t.subscribers)
	if t.array > 0 {
		label += fmt.Sprintf("-array-%d", t.array)
	}
	return label + fmt.Sprintf("-max-%d-timeout-%d", t.most, t.timeout)
}
