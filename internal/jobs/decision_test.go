package jobs

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
)

var now = time.UnixMilli(1_700_000_000_000)

// answered is an attempt with a response of a private address.
func answered(status int, body string) outbound.Attempt {
	a := outbound.Attempt{Status: status, Body: []byte(body), BodyComplete: true}
	if status/100 != 2 {
		a.Err = errors.New("the endpoint answered otherwise")
	}
	return a
}

// silent is an attempt without a response, to a private address.
func silent(class string) outbound.Attempt {
	return outbound.Attempt{Err: errors.New("no answer"), Error: class}
}

func public(a outbound.Attempt) outbound.Attempt {
	a.Public = true
	return a
}

func doubtful(a outbound.Attempt) outbound.Attempt {
	a.Doubtful = true
	return a
}

func after(a outbound.Attempt, wait time.Duration) outbound.Attempt {
	a.RetryAfter = wait
	return a
}

func TestDecide(t *testing.T) {
	const never = time.Duration(-1)
	const unavailable = "the service answered 503 Service Unavailable"
	const inDoubt = "the service did not answer over a connection that was used before; the job is posted again over a new one"
	const untaken, unreachable = "the service did not take the job", "the service did not answer: unreachable"
	idempotent := Run{Strategy: AtLeastOnce, Attempts: 3, MaxAttempts: 3, Timeout: time.Hour, URL: "https://shop.example"}
	last, often, held, below := idempotent, idempotent, idempotent, idempotent
	last.Attempts, often.Attempts, often.MaxAttempts, held.Holds, below.URL = 1, 2, 32767, 2, ""
	once := Run{Strategy: AtMostOnce, Attempts: 1, MaxAttempts: 1, Timeout: time.Hour}
	cut := answered(200, `{"status":"succeeded"}`)
	cut.BodyComplete, cut.BodyErr = false, errors.New("is longer than 4096 bytes")
	coded, page := answered(200, ""), answered(200, "<html>")
	coded.BodyComplete, coded.BodyErr = false, errors.New("cannot be decoded")
	page.BodyComplete, page.BodyErr = false, cut.BodyErr
	const tooLong = "the report in the answer is longer than 4096 bytes"
	for name, c := range map[string]struct {
		run      Run
		attempt  outbound.Attempt
		result   RunResult
		next     time.Duration
		reason   string
		standing bus.Standing
	}{
		"202":                 {idempotent, answered(202, ""), RunAccepted, time.Hour, "", bus.Proven},
		"202 of once":         {once, answered(202, ""), RunAccepted, time.Hour, "", bus.Proven},
		"204":                 {idempotent, answered(204, ""), RunAccepted, time.Hour, "", bus.Proven},
		"empty":               {idempotent, answered(200, ""), RunAccepted, time.Hour, "", bus.Proven},
		"text":                {idempotent, answered(200, "OK"), RunAccepted, time.Hour, "", bus.Proven},
		"array":               {idempotent, answered(200, "[]"), RunAccepted, time.Hour, "", bus.Proven},
		"another status":      {idempotent, answered(200, `{"status":"ok"}`), RunAccepted, time.Hour, "", bus.Proven},
		"a report cut off":    {idempotent, cut, RunAccepted, time.Hour, bus.HidingReason("the report in the answer could not be read", tooLong), bus.Proven},
		"the same, below":     {below, cut, RunAccepted, time.Hour, tooLong, bus.Proven},
		"the same, of once":   {once, cut, RunAccepted, time.Hour, tooLong, bus.Proven},
		"a report in code":    {below, coded, RunAccepted, time.Hour, "the report in the answer cannot be decoded", bus.Proven},
		"a long page":         {below, page, RunAccepted, time.Hour, "", bus.Proven},
		"a report with 201":   {idempotent, answered(201, `{"status":"succeeded"}`), RunAccepted, time.Hour, "", bus.Proven},
		"succeeded":           {idempotent, answered(200, ` {"status":"succeeded","x":[1]} `), RunSucceeded, never, "", bus.Proven},
		"once succeeded":      {once, answered(200, `{"status":"succeeded"}`), RunSucceeded, never, "", bus.Proven},
		"failed":              {idempotent, answered(200, `{"status":"failed"}`), RunFailed, 2 * time.Second, "", bus.Proven},
		"failed, retryable":   {idempotent, answered(200, `{"status":"failed","retryable":true}`), RunFailed, 2 * time.Second, "", bus.Proven},
		"failed for good":     {idempotent, answered(200, `{"status":"failed","retryable":false}`), RunFailed, never, "", bus.Proven},
		"failed at last":      {last, answered(200, `{"status":"failed"}`), RunFailed, never, "", bus.Proven},
		"failed once":         {once, answered(200, `{"status":"failed"}`), RunFailed, never, "", bus.Proven},
		"failed often":        {often, answered(500, ""), RunFailed, time.Hour, bus.HidingReason(untaken, "the service answered 500 Internal Server Error"), bus.Proven},
		"redirect":            {idempotent, answered(302, ""), RunFailed, 2 * time.Second, bus.HidingReason(untaken, "the service answered 302 Found"), bus.Failing},
		"failed, with a why":  {idempotent, answered(200, `{"status":"failed","error":"no such\u001fcustomer"}`), RunFailed, 2 * time.Second, "no such customer", bus.Proven},
		"failed, why a list":  {idempotent, answered(200, `{"status":"failed","error":[7]}`), RunFailed, 2 * time.Second, "", bus.Proven},
		"404":                 {idempotent, answered(404, ""), RunFailed, 2 * time.Second, bus.HidingReason(untaken, "the service answered 404 Not Found"), bus.Failing},
		"422 at last":         {last, answered(422, ""), RunFailed, never, bus.HidingReason(untaken, "the service answered 422 Unprocessable Entity"), bus.Proven},
		"500 of once":         {once, answered(500, ""), RunFailed, never, "the service answered 500 Internal Server Error", bus.Proven},
		"404 of the public":   {idempotent, public(answered(404, "")), RunFailed, 2 * time.Second, "the service answered 404 Not Found", bus.Failing},
		"404 of the operator": {below, answered(404, ""), RunFailed, 2 * time.Second, "the service answered 404 Not Found", bus.Failing},
		"503":                 {idempotent, answered(503, ""), RunHeld, time.Second / 2, bus.HidingReason(untaken, unavailable), bus.Failing},
		"429":                 {idempotent, answered(429, ""), RunHeld, time.Second / 2, bus.HidingReason(untaken, "the service answered 429 Too Many Requests"), bus.Failing},
		"503 at last":         {last, answered(503, ""), RunHeld, time.Second / 2, bus.HidingReason(untaken, unavailable), bus.Failing},
		"503 again":           {held, answered(503, ""), RunHeld, 2 * time.Second, bus.HidingReason(untaken, unavailable), bus.Failing},
		"503 for a while":     {held, after(answered(503, ""), time.Minute), RunHeld, time.Minute, bus.HidingReason(untaken, unavailable), bus.Failing},
		"503 for an instant":  {held, after(answered(503, ""), time.Millisecond), RunHeld, 2 * time.Second, bus.HidingReason(untaken, unavailable), bus.Failing},
		"503 for half":        {idempotent, after(answered(503, ""), 600*time.Millisecond), RunHeld, 600 * time.Millisecond, bus.HidingReason(untaken, unavailable), bus.Failing},
		"503 for a day":       {idempotent, after(answered(503, ""), 24*time.Hour), RunHeld, time.Hour, bus.HidingReason(untaken, unavailable), bus.Failing},
		"503 of once":         {once, after(answered(503, ""), time.Second), RunHeld, time.Second, unavailable, bus.Failing},
		"silence":             {idempotent, silent(bus.ErrorTimeout), RunAccepted, time.Hour, "", bus.Failing},
		"silence, in doubt":   {below, doubtful(silent(bus.ErrorTimeout)), RunAgain, 0, inDoubt, bus.Failing},
		"the same, own":       {idempotent, doubtful(silent(bus.ErrorTimeout)), RunAgain, 0, bus.HidingReason(unreachable, inDoubt), bus.Failing},
		"silence of once":     {once, silent(bus.ErrorTimeout), RunAccepted, time.Hour, "", bus.Failing},
		"no connection":       {below, silent(bus.ErrorConnectTimeout), RunFailed, 2 * time.Second, "the service did not answer: connect_timeout", bus.Failing},
		"no connection, own":  {idempotent, silent(bus.ErrorConnectTimeout), RunFailed, 2 * time.Second, bus.HidingReason(unreachable, "the service did not answer: connect_timeout"), bus.Failing},
		"refused once":        {once, silent(bus.ErrorRefused), RunFailed, never, "the service did not answer: refused", bus.Failing},
		"dns":                 {idempotent, silent(bus.ErrorDNS), RunFailed, 2 * time.Second, "the service did not answer: dns", bus.Failing},
		"tls":                 {idempotent, silent(bus.ErrorTLS), RunFailed, 2 * time.Second, "the service did not answer: tls", bus.Failing},
		"denied":              {idempotent, silent(bus.ErrorDenied), RunFailed, 2 * time.Second, "the service did not answer: denied", bus.Failing},
		"reset of the 2nd":    {last, silent(bus.ErrorReset), RunFailed, never, bus.HidingReason(unreachable, "the service did not answer: reset"), bus.Failing},
		"another's HTTP once": {once, silent(bus.ErrorProtocol), RunFailed, never, "the service did not answer: protocol", bus.Failing},
	} {
		d := decide(&c.run, c.attempt, now, 0)
		reported := c.result == RunFailed && c.attempt.Err == nil
		assert.Equal(t, Outcome{
			Result: c.result, Reason: c.reason, Reported: reported, Standing: c.standing, Status: c.attempt.Status,
			Public: c.attempt.Public || c.run.URL == "",
		}, d.Outcome, name)
		if c.next == never {
			assert.Zero(t, d.retryAt, name)
		} else {
			assert.Equal(t, c.next, d.retryAt.Sub(now), name)
		}
	}
}

// TestAReportThatIsWrong requires an error for a wrong report, and none for a body that is not
// meant as one.
func TestAReportThatIsWrong(t *testing.T) {
	below := &Run{Strategy: AtLeastOnce, Attempts: 3, MaxAttempts: 3, Timeout: time.Hour}
	for body, want := range map[string]string{
		`{"status":"succeeded"`:                     "is no JSON object: unexpected end of JSON input",
		`{'status':'succeeded'}`:                    "is no JSON object: invalid character",
		`{"status":"succeeded"} thanks`:             "is no JSON object: invalid character",
		`{"status":"succeeded"}{"status":"x"}`:      "is no JSON object: invalid character",
		"\ufeff{":                                   "is no JSON object: unexpected end",
		`{"status":"Succeeded"}`:                    `has the status "Succeeded"; write it in small letters`,
		`{"status":"FAILED","retryable":"no"}`:      `has the status "FAILED"; write it in small letters`,
		`{"status":"failed","retryable":"false"}`:   "has a retryable that is neither true nor false",
		`{"status":"succeeded","retryable":[true]}`: "has a retryable that is neither true nor false",
	} {
		d := decide(below, answered(200, body), now, 0)
		assert.Equal(t, RunAccepted, d.Result, body)
		assert.Contains(t, d.Reason, "the report in the answer "+want, body)
	}
	for _, body := range []string{"", "\ufeff", "{}", `{"status":200,"retryable":"no"}`, `{"status":"ok","error":7}`, `"succeeded"`, "null", "'{'"} {
		d := decide(below, answered(200, body), now, 0)
		assert.Equal(t, []any{RunAccepted, ""}, []any{d.Result, d.Reason}, body)
	}
	for _, body := range []string{"\ufeff{\"status\":\"succeeded\"}", `{"STATUS":"succeeded","error":[1]}`, `{"status":"succeeded","retryable":null}`} {
		assert.Equal(t, RunSucceeded, decide(below, answered(200, body), now, 0).Result, body)
	}
}

// TestAnAnswerIsKeptToShowWhy keeps the beginning of an answer that is no acceptance.
func TestAnAnswerIsKeptToShowWhy(t *testing.T) {
	run := &Run{Strategy: AtLeastOnce, Attempts: 3, MaxAttempts: 3}
	assert.Equal(t, "no disk\n", decide(run, answered(500, "no disk\n"), now, 0).Excerpt)
	assert.Equal(t, "later", decide(run, answered(503, "later"), now, 0).Excerpt)
	assert.Empty(t, decide(run, answered(202, "OK"), now, 0).Excerpt)
	assert.Equal(t, []int{maxReport, 0, maxExcerpt, maxExcerpt}, []int{keepReport(200), keepReport(202), keepReport(500), keepReport(302)})
}

func TestRetriesAreSpread(t *testing.T) {
	run := &Run{Strategy: AtLeastOnce, Attempts: 9, MaxAttempts: 10}
	assert.Equal(t, 3600*time.Millisecond, decide(run, answered(500, ""), now, 0.5).retryAt.Sub(now), "4 s, less a tenth")
}

func TestAJobWithoutAnAddress(t *testing.T) {
	const reason = "DOWNSTREAM_URL is not set"
	d := noAddress(&Run{Strategy: AtLeastOnce, Attempts: 1, Holds: 1, Standing: bus.Untried}, now)
	assert.Equal(t, Outcome{Result: RunHeld, Reason: reason, Standing: bus.Untried}, d.Outcome)
	assert.Equal(t, time.Second, d.retryAt.Sub(now))
	d = noAddress(&Run{Strategy: AtMostOnce, Attempts: 1}, now)
	assert.Equal(t, RunFailed, d.Result)
	assert.Zero(t, d.retryAt)
}
