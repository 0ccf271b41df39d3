package stats

import "time"

// Figures are what the screen and the JSON of rtm top show. What is not known is nil.
type Figures struct {
	At time.Time `json:"at"`
	// Seconds is the time between the two snapshots that rates are computed from, 0 after the first.
	Seconds float64 `json:"interval_seconds"`
	// Published and Delivered are rates of the whole bus in events/s. Queued is a number of events.
	Published *float64 `json:"published_per_second"`
	Delivered *float64 `json:"delivered_per_second"`
	Queued    int64    `json:"queued_events"`
	// Dropped is the number of events dropped in the last minute.
	Dropped *int64 `json:"dropped_events"`
	// OldestAge is the age of the oldest queued event in seconds.
	OldestAge *float64 `json:"oldest_event_age_seconds"`
	Jobs      []Jobs   `json:"jobs"`
	Due       *int64   `json:"jobs_due"`
	// JobTypes are empty also if the metrics could not be read.
	JobTypes []JobType `json:"job_types"`
	// Machines are empty also if the metrics could not be read.
	Machines []Machine `json:"machines"`
	Memory   *Memory   `json:"redis_memory"`

	Subscribers []Subscriber `json:"subscribers"`
	Topics      []Topic      `json:"topics"`
	Warnings    []string     `json:"warnings"`
}

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
}

// Machine is a state machine of [Figures].
type Machine struct {
	Name string `json:"machine"`
	// Labels is the number of labels, Errored that of those whose action is not tried again.
	Labels  int64 `json:"labels"`
	Errored int64 `json:"errored_labels"`
	// Moves and Failed are rates of the last minute, by the second: labels that workers have moved, and
	// webhooks and evaluations that failed.
	Moves  *float64 `json:"moves_per_second"`
	Failed *float64 `json:"failed_per_second"`
	// Unpublished is the number of moves that are still to be published.
	Unpublished int64 `json:"unpublished_moves"`
}

// Topic is a topic of [Figures].
type Topic struct {
	Name      string `json:"topic"`
	Publisher string `json:"publisher,omitempty"`
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
	// State is whether deliveries are held up, such as [Paused].
	State *string `json:"state"`
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

	// Timeout is how long an event may wait for others in a batch, in seconds.
	Timeout float64 `json:"-"`
}
