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

// Figures are how a bus is. Their JSON is that of GET /overview. What is not known is nil.
type Figures struct {
	At time.Time `json:"at"`
	// Redis is why Redis could not be read, in words, and empty if it could; then the other figures
	// are those of At, the last time it could be read, and RedisLostAt is since when it cannot.
	Redis       string `json:"redis_error,omitempty"`
	RedisLostAt Time   `json:"redis_lost_at,omitzero"`
	// Seconds is the time between the two samples that rates are computed from, 0 if there is one.
	Seconds float64 `json:"interval_seconds"`
	// Published and Delivered are rates of the whole bus in events/s. Queued is a number of events.
	Published *float64 `json:"published_per_second"`
	Delivered *float64 `json:"delivered_per_second"`
	Queued    int64    `json:"queued_events"`
	// Dropped is the number of events dropped in the last minute.
	Dropped *int64 `json:"dropped_events"`
	// OldestAge is the age of the oldest queued event in seconds.
	OldestAge *float64  `json:"oldest_event_age_seconds"`
	Queues    []Queue   `json:"jobs"`
	Due       *int64    `json:"jobs_due"`
	JobTypes  []JobType `json:"job_types"`
	Machines  []Machine `json:"machines"`
	Memory    *Memory   `json:"redis_memory"`
	// Clients are the [MaxClients] that have most in Redis, the largest first.
	Clients []Client `json:"clients"`
	// Processes are those that live. Threads and Busy are the sums of the workers among them.
	Processes []Process `json:"processes"`
	Threads   int       `json:"worker_threads"`
	Busy      int       `json:"worker_threads_busy"`

	Subscribers []Subscriber `json:"subscribers"`
	Topics      []Topic      `json:"topics"`
	// Problems are what is wrong, worst first.
	Problems []Problem `json:"problems"`
	// Unread are the parts that could not be read. Of them, the figures are those of their ReadAt.
	Unread []Unread `json:"unread"`
	// Warnings say the same, one sentence each.
	Warnings []string `json:"warnings"`
	// History is how many the history has room for; nil while there is none.
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
	// Queued is the number of jobs that wait, Waiting those of them that are due and held back by the
	// limit or a pause.
	Queued      int64 `json:"queued"`
	Waiting     int64 `json:"waiting"`
	InProgress  int64 `json:"in_progress"`
	Concurrency int64 `json:"concurrency"`
	// OldestAge is the time since the oldest job was enqueued that is due and not in progress, in
	// seconds; nil if there is none.
	OldestAge *float64 `json:"oldest_age_seconds"`
	// These are rates of the last minute, in jobs/s.
	Succeeded *float64 `json:"succeeded_per_second"`
	Failed    *float64 `json:"failed_per_second"`
	Expired   *float64 `json:"expired_per_second"`
	Paused    bool     `json:"paused"`

	// HeldBack is whether jobs were held back all through the last minute, and the oldest grew older.
	HeldBack bool `json:"-"`
}

// Machine is a state machine of [Figures].
type Machine struct {
	Name string `json:"machine"`
	// Labels is the number of labels, Errored that of those whose action is not tried again.
	Labels  int64 `json:"labels"`
	Errored int64 `json:"errored_labels"`
	// Moves and Failed are rates of the last minute, by the second: labels that workers have moved,
	// and webhooks and evaluations that failed.
	Moves  *float64 `json:"moves_per_second"`
	Failed *float64 `json:"failed_per_second"`
	// Unpublished is the number of moves that are still to be published.
	Unpublished int64 `json:"unpublished_moves"`

	// Held is the least that Unpublished was in the last minute.
	Held int64 `json:"-"`
}

// Topic is a topic of [Figures].
type Topic struct {
	Name      string `json:"topic"`
	Publisher string `json:"publisher,omitempty"`
	// State is one of the states of a topic.
	State State `json:"condition"`
	// Rate is in events/s, Events is the number ever published.
	Rate        *float64 `json:"published_per_second"`
	Events      int64    `json:"events"`
	Subscribers int      `json:"subscribers"`
}

// Subscriber is a subscriber of [Figures].
type Subscriber struct {
	Name    string   `json:"subscriber"`
	Topics  []string `json:"topics"`
	Queued  int64    `json:"queued_events"`
	Batches *int64   `json:"queued_batches"`
	// OldestAge is the age of the oldest queued event in seconds.
	OldestAge *float64 `json:"oldest_event_age_seconds"`
	// State is how it is.
	State State `json:"condition"`
	// Hold is whether deliveries are held up now, and why: [Ready], [Paced], [Throttled], [Paused] or
	// [Blocked]. HoldUntil is until when, if that is known.
	Hold      string `json:"state"`
	HoldUntil Time   `json:"held_until"`
	// Rate is in acknowledged events/s, Sent is the number ever acknowledged.
	Rate *float64 `json:"delivered_per_second"`
	Sent int64    `json:"sent_events"`
	// Failed is the share of failed deliveries in the last minute, from 0 to 1.
	Failed *float64 `json:"failed_share"`
	// Dropped is the number of events dropped in the last minute because Redis was about to be full.
	Dropped *int64 `json:"dropped_events"`
	// Dead is the number of events in dead letters.
	Dead   *int64 `json:"dead_letter_events"`
	Health int    `json:"health_points"`
	// Trend is the change of the health in the last minute.
	Trend int `json:"health_trend"`
	// SinceAttempt is the time since the last attempt of a delivery, in seconds.
	SinceAttempt *float64 `json:"since_last_attempt_seconds"`
	// Failure is what came of the last delivery if it failed, such as "503" or "timeout".
	Failure string `json:"last_failure,omitempty"`

	// Timeout is how long an event may wait for others in a batch, in seconds.
	Timeout float64 `json:"timeout_seconds"`

	// Throttled is whether deliveries wait because some have failed, whatever else holds them up.
	Throttled bool `json:"-"`
}

// The holds of a subscriber.
const (
	// Ready is nothing of what follows.
	Ready = "ready"
	// Paced is that its pace does not allow a delivery yet.
	Paced = "paced"
	// Throttled is that the bus waits because deliveries have failed.
	Throttled = "throttled"
	// Paused is that it gets nothing until it is resumed.
	Paused = "paused"
	// Blocked is that a batch that has failed holds up those behind it, with strict_order.
	Blocked = "blocked"
)

// State is how a subscriber or a topic is, in a word.
type State string

// The states of a subscriber, the first that holds.
const (
	// Gone is that its last answer was 410, and it has acknowledged nothing since.
	Gone State = "gone"
	// PausedState is that it is paused.
	PausedState State = "paused"
	// Stalled is that something has waited for 15 min, and nothing was acknowledged in them.
	Stalled State = "stalled"
	// Failing is that it is left alone until later, or nothing but failures in the last minute.
	Failing State = "failing"
	// Behind is that its oldest event is older than 5 min, and that age grew over the last 10 min, by
	// more than half a second a second.
	Behind State = "behind"
	// Flaky is that 5 % or more of the deliveries of the last 5 min failed, not counting those before
	// the first success.
	Flaky State = "flaky"
	// Idle is that nothing waits, and no delivery was attempted for 15 min.
	Idle State = "idle"
	// OK is nothing of these.
	OK State = "ok"
)

// The states of a topic, the first that holds, or [OK].
const (
	// Unclaimed is that nobody has published.
	Unclaimed State = "unclaimed"
	// Unheard is that events come, and nobody is subscribed.
	Unheard State = "nobody listens"
	// Quiet is that nothing came for 5 min, though it was more than 1 event/s over 6 h.
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
	// Rule is which kind of problem it is, such as "no-worker"; docs/console.md lists them.
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Title is a short sentence; Detail says with numbers what is wrong, and what the bus does about
	// it by itself.
	Title  string `json:"title"`
	Detail string `json:"detail"`
	// Since is since when it is known to hold; zero if it is not known.
	Since Time `json:"since"`
	// Subscriber, Topic, JobType and Machine are what it is about, if that is one.
	Subscriber string `json:"subscriber,omitempty"`
	Topic      string `json:"topic,omitempty"`
	JobType    string `json:"job_type,omitempty"`
	Machine    string `json:"machine,omitempty"`
}
