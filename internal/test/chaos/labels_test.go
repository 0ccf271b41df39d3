package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/machines/engine"
	"routemaster/internal/test/bustest"
)

// rounds is the machine of the labels. A PATCH with `go` sends a label on a round, on which a
// webhook is called; one with `last` too has it end after that, wherever the label is by then.
const rounds = `
state_machines:
  rounds:
    states:
      - gate: waits
        triggers: [{metadata: go}]
        exit_condition: metadata.go
        next: calls
      - {action: calls, webhook: "URL/calls/<label>", attempts: 1000, backoff: 100ms, timeout: 3s, next: decides}
      - gate: decides
        triggers: [{event: entry}]
        exit_condition: true
        next:
          type: context
          path: metadata.last
          destinations: [{value: true, state: files}]
          default: waits
      - {action: files, webhook: "URL/files/<label>", attempts: 1000, backoff: 100ms, timeout: 3s, next: ends}
      - {gate: ends, exit_condition: false}
`

// pauses is a state of the machine that comes and goes, as its operator replaces the definitions.
const pauses = `
      - {gate: pauses, triggers: [{event: entry}], exit_condition: true, next: calls}
      - {action: calls,`

const (
	roundsMachine = machines.Name("rounds")
	// end is the state at which every label must arrive.
	end = machines.StateName("ends")
	// labelProxy names the service of the webhooks in the name of its proxy.
	labelProxy = "webhooks"
	// labelsPerClient is how many labels a client moves, one after the other.
	labelsPerClient = 150
	// maxRounds is how many rounds a label is sent on before its last, at most; maxRoundPause is the
	// time between two of its changes, at most.
	maxRounds     = 2
	maxRoundPause = 30 * time.Millisecond
	// redefinedEvery is how often the definitions are replaced.
	redefinedEvery = time.Second
)

// labelService has the webhooks of all labels. It misbehaves now and then, and notes its calls.
type labelService struct {
	*requester
	*temper

	mu sync.Mutex
	// calls are the calls of each webhook, as they were answered, by path and token.
	calls map[webhook][]*attempt
	// sent is how many labels were sent on their last round, and early how many of them while there
	// were faults.
	sent, early int
	// redefined is how often the definitions were replaced.
	redefined int
}

// webhook identifies a call, and its visit if it belongs to one.
type webhook struct{ path, token string }

// startLabels applies the definition, and starts a service for its webhooks. It returns functions
// that move the labels, one for each client: spread over the load, and the remaining ones at once
// after stop is closed.
func (c *chaos) startLabels(seed uint64, apis []string, stop, well <-chan struct{}) (move []func(context.Context)) {
	s := &labelService{
		requester: c.newRequester("labels--1", "labels", apis), temper: newTemper(seed, 600, well),
		calls: map[webhook][]*attempt{},
	}
	c.labels = s
	url := c.addProxy(proxyName("workers", labelProxy), serveTLS(c.t, s))
	yaml := []byte(strings.ReplaceAll(rounds, "URL", url))
	definitions, _, err := definition.Load(definition.File{Name: "rounds.yaml", Content: yaml})
	require.NoError(c.t, err)
	definitions.Source = yaml
	_, err = engine.NewBus(c.stores.Partitions()).Apply(c.t.Context(), definitions, nil, time.Now())
	require.NoError(c.t, err)
	more := strings.NewReplacer("next: calls", "next: pauses", "\n      - {action: calls,", pauses).Replace(string(yaml))
	move = append(move, func(ctx context.Context) { s.redefine(ctx, string(yaml), more, stop) })
	start, clients := time.Now(), 1+*chaosLabels/labelsPerClient
	for client := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(700+client)))
		move = append(move, func(ctx context.Context) {
			for number := client; number < *chaosLabels; number += clients {
				due := start.Add(*chaosDuration * time.Duration(number) / time.Duration(*chaosLabels))
				pause(stop, time.Until(due))
				if !s.send(ctx, labelName(number), random, stop) {
					return
				}
			}
		})
	}
	return move
}

// redefine replaces the definitions by others with more states and back, until stop is closed. At
// last they are as before.
func (s *labelService) redefine(ctx context.Context, yaml, more string, stop <-chan struct{}) {
	operator := *s.requester
	operator.token = bustest.RootKey
	put := func(query, definitions string) (ok bool) {
		ok = operator.insist(ctx, http.MethodPut, "/state-machines"+query, definitions, http.StatusOK)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.redefined++
		return ok
	}
	for stopped := false; !stopped; {
		ok := put("", more)
		pause(stop, redefinedEvery)
		if !ok || !put("?move=rounds.pauses:calls", yaml) {
			return
		}
		select {
		case <-stop:
			stopped = true
		case <-time.After(redefinedEvery):
		}
	}
}

func labelName(number int) machines.LabelName {
	return machines.LabelName(fmt.Sprintf("label-%05d", number))
}

// pause waits for a time, at most until stop is closed.
func pause(stop <-chan struct{}, d time.Duration) {
	select {
	case <-stop:
	case <-time.After(d):
	}
}

// send makes a label, and sends it on its rounds. It is false if the context was done before.
func (s *labelService) send(ctx context.Context, name machines.LabelName, random *rand.Rand, stop <-chan struct{}) bool {
	path := fmt.Sprintf("/state-machines/%s/labels/%s?wait=0", roundsMachine, name)
	// A conflict is the answer to a repetition.
	ok := s.insist(ctx, http.MethodPost, path, `{"metadata":{}}`, http.StatusCreated, http.StatusConflict)
	for range random.IntN(maxRounds + 1) {
		pause(stop, time.Duration(random.Int64N(int64(maxRoundPause))))
		ok = ok && s.insist(ctx, http.MethodPatch, path, `{"metadata":{"go":true}}`, http.StatusOK)
	}
	pause(stop, time.Duration(random.Int64N(int64(maxRoundPause))))
	ok = ok && s.insist(ctx, http.MethodPatch, path, `{"metadata":{"go":true,"last":true}}`, http.StatusOK)
	if ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent++
		select {
		case <-stop:
		default:
			s.early++
		}
	}
	return ok
}

// ServeHTTP is a webhook.
func (s *labelService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &attempt{arrived: time.Now()}
	var body struct{ Label string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil { // it was cut off on its way
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/"+body.Label) {
		s.ledger.complain("the webhook %s was called for %s", r.URL.Path, body.Label)
	}
	of := webhook{r.URL.Path, r.Header.Get(engine.IdempotencyHeader)}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls[of] = append(s.calls[of], a)
	}()
	switch choice := s.draw(); {
	case choice < misbehaves/4:
		w.WriteHeader(http.StatusInternalServerError)
	case choice < misbehaves/3:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	case choice < misbehaves/2:
		panic(http.ErrAbortHandler)
	default:
		a.acknowledged = time.Now()
	}
}
