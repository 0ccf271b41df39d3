package chaos

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"routemaster/internal/test/bustest"
)

// requester is a client that repeats each request until it is answered.
type requester struct {
	token  string
	apis   []string
	client *http.Client
	// ledger takes the answers that nothing explains.
	ledger *ledger
}

func (c *chaos) newRequester(token, name string, apis []string) *requester {
	c.addClient(token, name)
	r := &requester{token, apis, bustest.NewClient(c.t), c.ledger}
	r.client.Timeout = publishTimeout
	return r
}

// insist sends a request until it gets an answer that it may get, or the context is done: then it
// is false.
func (r *requester) insist(ctx context.Context, method, path, body string, allowed ...int) bool {
	for try := 0; ctx.Err() == nil; try++ {
		status, text := r.call(ctx, method, r.apis[try%len(r.apis)]+path, body)
		for _, fine := range allowed {
			if status == fine {
				return true
			}
		}
		if strings.Contains(string(text), "job_already_archived") {
			return true // the answer to an earlier try was lost
		}
		if status != 0 && status != http.StatusServiceUnavailable {
			r.ledger.complain("%s %s was answered %d %s", method, path, status, text)
			return false
		}
		// A request refused for want of a replica is stored all the same, and has its effect each time.
		select {
		case <-ctx.Done():
		case <-time.After(min(publishBackoff/2<<min(try, 10), time.Second)):
		}
	}
	return false
}

// call sends a request. The status is 0 if there was no answer.
func (r *requester) call(ctx context.Context, method, url, body string) (status int, text []byte) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		r.ledger.complain("a request cannot be sent: %v", err)
		return 0, nil
	}
	req.SetBasicAuth(r.token, "x")
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	text, _ = io.ReadAll(resp.Body)
	return resp.StatusCode, text
}
