package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// profiles are the profiles that a stack takes of its daemons.
type profiles struct {
	// addresses has where each daemon serves them, beside its metrics.
	addresses map[string]string
	// taken numbers the files.
	taken int
}

// Profile starts CPU profiles of the running daemons, if the stack takes profiles. Their length is
// rounded to seconds. The function that it returns waits for them, and takes the heap profiles.
func (s *Stack) Profile(ctx context.Context, scenario, label string, length time.Duration) (finish func() error) {
	if s.options.Profiles == "" {
		return func() error { return nil }
	}
	p := &s.profiles
	p.taken++
	file := func(name, kind string) string {
		return filepath.Join(s.options.Profiles, fmt.Sprintf("%s-%02d-%s.%s.%s.pb.gz", scenario, p.taken, label, name, kind))
	}
	seconds := max(1, int(length.Round(time.Second).Seconds()))
	group, cpuCtx := errgroup.WithContext(ctx)
	var names []string
	for name, address := range p.addresses {
		if s.running[name] == nil {
			continue
		}
		names = append(names, name)
		group.Go(func() error {
			return fetchProfile(cpuCtx, address, fmt.Sprintf("profile?seconds=%d", seconds), file(name, "cpu"))
		})
	}
	return func() error {
		err := group.Wait()
		for _, name := range names {
			err = errors.Join(err, fetchProfile(ctx, p.addresses[name], "heap", file(name, "heap")))
		}
		return err
	}
}

// readProfile reads a profile that a daemon serves.
func readProfile(ctx context.Context, address, profile string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/pprof/"+profile, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", req.URL, resp.Status)
	}
	return content, err
}

// fetchProfile writes a profile that a daemon serves into a file.
func fetchProfile(ctx context.Context, address, profile, file string) error {
	content, err := readProfile(ctx, address, profile)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// Heap returns the size of a daemon's live heap, in bytes. It collects garbage twice, since buffers
// in pools survive once.
func (s *Stack) Heap(ctx context.Context, name string) (bytes int64, err error) {
	var text []byte
	for range 2 {
		if text, err = readProfile(ctx, s.profiles.addresses[name], "heap?gc=1&debug=1"); err != nil {
			return 0, err
		}
	}
	_, after, _ := strings.Cut(string(text), "\n# HeapAlloc = ")
	if _, err = fmt.Sscan(after, &bytes); err != nil {
		err = fmt.Errorf("heap profile of %s: %w", name, err)
	}
	return bytes, err
}
