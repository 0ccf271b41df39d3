package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// newHTTPClient makes a client for what is not measured. It keeps no connections.
func newHTTPClient(insecure bool) *http.Client {
	return &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: insecure}},
	}
}

// busAPI is a bus, for what is not measured.
type busAPI struct {
	url      string
	insecure bool
	client   *http.Client
}

// call sends a request in the name of a token.
func (a busAPI) call(ctx context.Context, token, method, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.SetBasicAuth(token, "")
	answer, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	detail, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: the bus answers %s: %s", method, path, answer.Status, bytes.TrimSpace(detail))
	}
	return nil
}

// subscribe has the subscriber of a token get the events of one topic.
func (a busAPI) subscribe(ctx context.Context, token, topic, callback string, most, timeout int) error {
	return a.call(ctx, token, http.MethodPost, "/subscription", map[string]any{
		"topics": []string{topic}, "callback": callback, "uuid": "bench", "max": most, "timeout": timeout,
	})
}

// receiverAPI is how a receiver is asked.
type receiverAPI struct {
	control string
	client  *http.Client
}

// begin has it forget all, and follow the deliveries to paths that begin so.
func (r receiverAPI) begin(ctx context.Context, prefix string) error {
	_, err := r.do(ctx, http.MethodPost, "/begin?prefix="+url.QueryEscape(prefix))
	return err
}

// clearLatency begins a new interval.
func (r receiverAPI) clearLatency(ctx context.Context) error {
	_, err := r.do(ctx, http.MethodPost, "/clear")
	return err
}

func (r receiverAPI) tally(ctx context.Context) (tally Tally, err error) {
	text, err := r.do(ctx, http.MethodGet, "/tally")
	if err != nil {
		return tally, err
	}
	return tally, json.Unmarshal(text, &tally)
}

func (r receiverAPI) do(ctx context.Context, method, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.control+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}
