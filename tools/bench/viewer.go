package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"

	"routemaster/tools/bench/load"
)

// viewer is a client that is logged in to the console.
type viewer struct {
	http *http.Client
	// url is the console's, with a slash at its end, path the page that is looked at.
	url, path string
	// bytes is the size of the last page, as it was sent.
	bytes int64
}

// paths are the pages that viewers look at: a subscriber's is its own.
func paths(subscriber int) []string {
	return []string{"", "subscribers", "topics", "subscribers/" + nameOf(subscriber)}
}

// logInAll has all viewers log in, each as another client.
func (b *consoleBench) logInAll(ctx context.Context) (all []*viewer, err error) {
	for i := range b.size.viewers {
		jar, _ := cookiejar.New(nil) // it never fails
		some := paths(i)
		v := &viewer{
			http: &http.Client{Jar: jar, Timeout: 10 * time.Second, Transport: &http.Transport{DisableCompression: true}},
			url:  "http://" + b.stack.Web + "/console/", path: some[i%len(some)],
		}
		if err := v.logIn(ctx, tokenOf(i)); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// logIn posts the form, and follows it to the overview.
func (v *viewer) logIn(ctx context.Context, token string) error {
	form := url.Values{"secret": {token}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, v.url+"login", strings.NewReader(form))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.send(r)
}

// look asks for a page, as browsers do.
func (v *viewer) look(ctx context.Context, path string) error {
	return v.get(ctx, path, http.Header{})
}

// refresh asks for a page again, as its script does.
func (v *viewer) refresh(ctx context.Context, path string) error {
	return v.get(ctx, path, http.Header{"X-Refresh": {"1"}})
}

func (v *viewer) get(ctx context.Context, path string, header http.Header) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+path, nil)
	if err != nil {
		return err
	}
	r.Header = header
	r.Header.Set("Accept-Encoding", "gzip")
	return v.send(r)
}

func (v *viewer) send(r *http.Request) error {
	resp, err := v.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if v.bytes, err = io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", r.URL, resp.Status)
	}
	return nil
}

// viewing is the load of viewers. Each of them looks at a page again and again.
func (b *consoleBench) viewing(ctx context.Context, all []*viewer, window load.Window) load.Load {
	l := load.Load{Window: window, Rate: float64(len(all)) / b.size.refresh.Seconds()}
	for _, v := range all {
		l.Senders = append(l.Senders, func(time.Time) error { return v.refresh(ctx, v.path) })
	}
	return l
}
