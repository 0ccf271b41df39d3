package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Control asks a receiver on its control address, HOST:PORT.
type Control string

// controlTimeout bounds a question and its answer.
const controlTimeout = 10 * time.Second

// Begin has the receiver forget everything, and follow the deliveries to paths with a prefix.
func (c Control) Begin(ctx context.Context, prefix string) error {
	_, err := c.call(ctx, http.MethodPost, "/begin?prefix="+url.QueryEscape(prefix))
	return err
}

// ClearLatency begins a new interval for the latencies, and returns the tally.
func (c Control) ClearLatency(ctx context.Context) (Tally, error) {
	return c.call(ctx, http.MethodPost, "/clear")
}

// Relent makes the receiver accept from now on the events that it refused until now.
func (c Control) Relent(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodPost, "/relent")
	return err
}

// Tally returns the receiver's counts since its run began.
func (c Control) Tally(ctx context.Context) (Tally, error) {
	return c.call(ctx, http.MethodGet, "/tally")
}

func (c Control) call(ctx context.Context, method, path string) (tally Tally, err error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+string(c)+path, nil)
	if err != nil {
		return tally, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return tally, fmt.Errorf("ask the receiver: %w", err)
	}
	defer resp.Body.Close()
	return tally, json.NewDecoder(resp.Body).Decode(&tally)
}
