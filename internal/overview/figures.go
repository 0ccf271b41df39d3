package overview

import (
	"strconv"
	"time"
)

// Time is ms since the Unix epoch in JSON, null for the zero time.
type Time struct{ time.Time }

// MarshalJSON writes ms since the Unix epoch, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, t.UnixMilli(), 10), nil
}

// UnmarshalJSON reads ms since the Unix epoch, or null.
func (t *Time) UnmarshalJSON(text []byte) error {
	if t.Time = (time.Time{}); string(text) == "null" {
		return nil
	}
	ms, err := strconv.ParseInt(string(text), 10, 64)
	t.Time = time.UnixMilli(ms)
	return err
}

// Figures are how a bus is. Their JSON is the body of GET /overview, whose description has the
// comments of the fields. A nil is not known.
type Figures struct {
	// When the sample was taken.
	At time.Time `json:"at"`
	// Why Redis could not be read; the other figures are then from the last time it could.
	Redis string `json:"redis_error,omitempty"`
	// Since when it could not, in ms since the Unix epoch.
	RedisLostAt Time `json:"redis_lost_at,omitzero"`
	// Time between the samples that rates are computed from, 0 with one.
	Seconds   float64  `json:"interval_seconds"`
	Published *float64 `json:"published_per_second"`
	Delivered *float64 `json:"delivered_per_second"`
	Queued    int64    `json:"queued_events"`
	// Events dropped in the last minute because Redis was about to be full.
	Dropped   *int64   `json:"dropped_events"`
	OldestAge *float64 `json:"oldest_event_age_seconds"`
	Queues    []Queue  `json:"jobs"`
	// Deliveries that are due now or soon.
	Due      *int64    `json:"jobs_due"`
	JobTypes []JobType `json:"job_types"`
	Machines []Machine `json:"machines"`
	Memory   *Memory   `json:"redis_memory"`
	// The 20 clients that have most in Redis, the largest first. Of several nodes the figures are the
	// sums.
	Clients []Client `json:"clients" api:"maxItems=20"`
	// The processes that live.
	Processes []Process `json:"processes"`
	// Of all workers.
	Threads int `json:"worker_threads"`
	Busy    int `json:"worker_threads_busy"`

	Subscribers []Subscriber `json:"subscribers"`
	Topics      []Topic      `json:"topics"`
	// What is wrong, worst first.
	Problems []Problem `json:"problems"`
	// Parts that could not be read. Their figures are from the last time they could.
	Unread []Unread `json:"unread"`
	// What could not be read, one sentence each.
	Warnings []string `json:"warnings"`
	// How many the history has room for; null while there is none.
	History *Coverage `json:"history"`
}

// Coverage is how many of all subscribers and topics the history has room for, by its last slot.
type Coverage struct {
	Subscribers    int64 `json:"subscribers"`
	AllSubscribers int64 `json:"all_subscribers"`
	Topics         int64 `json:"topics"`
	AllTopics      int64 `json:"all_topics"`
}

// Whole reports whether the history has room for all.
func (c Coverage) Whole() bool { return c.Subscribers == c.AllSubscribers && c.Topics == c.AllTopics }

// JobType is a job type of [Figures].
type JobType struct {
	Name string `json:"job_type"`
	// Jobs that wait.
	Queued int64 `json:"queued"`
	// Jobs that are due, and held back by the limit or a pause.
	Waiting     int64 `json:"waiting"`
	InProgress  int64 `json:"in_progress"`
	Concurrency int64 `json:"concurrency"`
	// Time since the oldest job was enqueued that is due and not in progress; null if there is none.
	OldestAge *float64 `json:"oldest_age_seconds"`
	// In the last minute, as the next two.
	Succeeded *float64 `json:"succeeded_per_second"`
	Failed    *float64 `json:"failed_per_second"`
	Expired   *float64 `json:"expired_per_second"`
	Paused    bool     `json:"paused"`

	// HeldBack is whether jobs were held back all through the last minute, and the oldest grew older.
	HeldBack bool `json:"-"`
}

// Machine is a state machine of [Figures].
type Machine struct {
	Name   string `json:"machine"`
	Labels int64  `json:"labels"`
	// Labels whose action is not tried again.
	Errored int64 `json:"errored_labels"`
	// Labels that workers have moved in the last minute.
	Moves *float64 `json:"moves_per_second"`
	// Webhooks and evaluations that failed in the last minute.
	Failed *float64 `json:"failed_per_second"`
	// Moves that are still to be published.
	Unpublished int64 `json:"unpublished_moves"`

	// Held is the least that Unpublished was in the last minute.
	Held int64 `json:"-"`
}

// Topic is a topic of [Figures].
type Topic struct {
	Name string `json:"topic"`
	// The client's name; missing until it publishes.
	Publisher string `json:"publisher,omitempty"`
	// How it is, in a word.
	State State    `json:"condition" api:"enum=unclaimed|nobody%20listens|quiet|ok"`
	Rate  *float64 `json:"published_per_second"`
	// Events ever published.
	Events      int64 `json:"events"`
	Subscribers int   `json:"subscribers"`
}

// Subscriber is a subscriber of [Figures].
type Subscriber struct {
	// The client's name.
	Name      string   `json:"subscriber"`
	Topics    []string `json:"topics"`
	Queued    int64    `json:"queued_events"`
	Batches   *int64   `json:"queued_batches"`
	OldestAge *float64 `json:"oldest_event_age_seconds"`
	// How it is, in a word.
	State State `json:"condition" api:"enum=gone|paused|stalled|failing|behind|flaky|idle|ok"`
	// Whether deliveries are held up, and why.
	Hold string `json:"state" api:"enum=ready|paced|throttled|paused|blocked"`
	// Until when, in ms since the Unix epoch; null if that is not known.
	HoldUntil Time     `json:"held_until"`
	Rate      *float64 `json:"delivered_per_second"`
	// Events ever acknowledged.
	Sent int64 `json:"sent_events"`
	// Share of failed deliveries in the last minute, from 0 to 1.
	Failed *float64 `json:"failed_share"`
	// Events dropped in the last minute because Redis was about to be full.
	Dropped *int64 `json:"dropped_events"`
	Dead    *int64 `json:"dead_letter_events"`
	Health  int    `json:"health_points"`
	// Change of the health in the last minute.
	Trend        int      `json:"health_trend"`
	SinceAttempt *float64 `json:"since_last_attempt_seconds"`
	// Result of the last delivery, such as 503 or timeout, if none has succeeded since.
	Failure string `json:"last_failure,omitempty"`
	// How long an event may wait for others in a batch.
	Timeout float64 `json:"timeout_seconds"`

	// Throttled is whether deliveries wait because some have failed, whatever else holds them up.
	Throttled bool `json:"-"`
}

// The holds of a subscriber.
const (
	// Ready: none of the conditions below.
	Ready = "ready"
	// Paced is that its pace does not allow a delivery yet.
	Paced = "paced"
	// Throttled is that the bus waits because deliveries have failed.
	Throttled = "throttled"
	// Paused: it gets nothing until it is resumed.
	Paused = "paused"
	// Blocked is that a batch that has failed holds up those behind it, with strict_order.
	Blocked = "blocked"
)

// State is how a subscriber or a topic is, in a word.
type State string

// The states of a subscriber, the first that holds.
const (
	// Gone: its last response was 410, and it has acknowledged nothing since.
	Gone State = "gone"
	// PausedState is that it is paused.
	PausedState State = "paused"
	// Stalled: events have waited for 15 min, and none was acknowledged in that time.
	Stalled State = "stalled"
	// Failing: it is throttled, or every delivery of the last minute failed.
	Failing State = "failing"
	// Behind is that its oldest event is older than 5 min, and that age grew over the last 10 min, by
	// more than half a second a second.
	Behind State = "behind"
	// Flaky is that 5 % or more of the deliveries of the last 5 min failed, not counting those before
	// the first success.
	Flaky State = "flaky"
	// Idle: no events wait, and no delivery was attempted for 15 min.
	Idle State = "idle"
	// OK: none of these.
	OK State = "ok"
)

// The states of a topic, the first that holds, or [OK].
const (
	// Unclaimed: it has no publisher yet.
	Unclaimed State = "unclaimed"
	// Unheard: it receives events, and has no subscriber.
	Unheard State = "nobody listens"
	// Quiet: no event for 5 min, after more than 1 event/s over 6 h.
	Quiet State = "quiet"
)

// Severity is how bad a problem is.
type Severity string

// The severities, worst first.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Note     Severity = "note"
)

// Problem is something that is wrong, in words.
type Problem struct {
	// Which kind of problem it is, such as no-worker: docs/operating.md lists them.
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity" api:"enum=critical|warning|note"`
	// A short sentence.
	Title string `json:"title"`
	// What is wrong, with numbers, and what the bus does about it by itself.
	Detail string `json:"detail"`
	// Since when it is known to hold, in ms since the Unix epoch.
	Since Time `json:"since"`
	// The subscriber, topic, job type or machine that it is about, if it is about one.
	Subscriber string `json:"subscriber,omitempty"`
	Topic      string `json:"topic,omitempty"`
	JobType    string `json:"job_type,omitempty"`
	Machine    string `json:"machine,omitempty"`
}
