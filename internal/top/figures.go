package top

import "time"

// Figures are what the screen shows. What is not known is nil. They are also the JSON of rtm top.
type Figures struct {
	At time.Time `json:"at"`
	// Seconds is the time between the two snapshots that the rates are made of, 0 if there was only one.
	Seconds float64 `json:"interval_seconds"`
	// Published and Delivered are events/s of the whole bus, Queued the events that wait.
	Published *float64 `json:"published_per_second"`
	Delivered *float64 `json:"delivered_per_second"`
	Queued    int64    `json:"queued_events"`
	// Dropped is events, of all subscribers in the last minute.
	Dropped *int64 `json:"dropped_events"`
	// OldestAge is in seconds.
	OldestAge *float64 `json:"oldest_event_age_seconds"`
	Jobs      []Jobs   `json:"jobs"`
	Due       *int64   `json:"jobs_due"`
	Memory    *Memory  `json:"redis_memory"`

	Subscribers []Subscriber `json:"subscribers"`
	Topics      []Topic      `json:"topics"`
	Troubles    []string     `json:"troubles"`
}

// Topic is a topic of [Figures].
type Topic struct {
	Name      string `json:"topic"`
	Publisher string `json:"publisher,omitempty"`
	// Rate is published events/s, Events those ever published.
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
	// OldestAge is that of the oldest event that waits, in seconds.
	OldestAge *float64 `json:"oldest_event_age_seconds"`
	// Rate is acknowledged events/s, Sent those ever acknowledged.
	Rate *float64 `json:"delivered_per_second"`
	Sent int64    `json:"sent_events"`
	// Failed is the share of deliveries that failed, of those in the last minute.
	Failed *float64 `json:"failed_share"`
	// Dropped is the events that were dropped in the last minute because Redis was about to be full.
	Dropped *int64 `json:"dropped_events"`
	Health  int    `json:"health_points"`
	// Trend is what the health has changed by in the last minute.
	Trend int `json:"health_trend"`
	// SinceAttempt is the time since a delivery was last tried, in seconds.
	SinceAttempt *float64 `json:"since_last_attempt_seconds"`

	// timeout is how long an event may wait for others, in seconds.
	timeout float64
}
