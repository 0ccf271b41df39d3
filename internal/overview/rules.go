package overview

import (
	"time"
)

// rule is a kind of [Problem].
type rule struct {
	Name     string
	Severity Severity
	// Above is the threshold that a number has to exceed. Over is how long a condition has to hold,
	// or the window of a count. Both equal those of the alert in examples/alerts.yaml, if Alert
	// names one.
	Above float64
	Over  time.Duration
	Alert string

	find func(j *judge, r rule) []Problem
}

// Other thresholds.
const (
	// stalledOver is how long a stalled subscriber has not acknowledged any event.
	stalledOver = 15 * time.Minute
	// tookOver is the end of stalledOver. It suffices to see that most subscribers are not stalled.
	tookOver = 2 * time.Minute
	// behindAbove is the age of the oldest event in seconds, and behindSlope how fast it grows in s/s,
	// over behindOver.
	behindAbove, behindSlope, behindOver = 300, 0.5, 10 * time.Minute
	// flakyShare is of the deliveries in flakyOver.
	flakyShare, flakyOver = 0.05, 5 * time.Minute
	// idleOver is how long an idle subscriber has had no delivery attempt.
	idleOver = 15 * time.Minute
	// A quiet topic got no event for quietOver, and usually more than quietAbove events/s.
	quietAbove, quietOver = 1, 5 * time.Minute
)

// rules are all rules, of each severity the most urgent first. Of the rules about subscribers only
// the first that holds shows a subscriber.
var rules = []rule{
	{Name: "redis-unavailable", Severity: Critical, Alert: "RoutemasterRedisUnavailable", find: redisUnavailable},
	{Name: "data-lost", Severity: Critical, Alert: "RoutemasterDataLost", find: dataLost},
	{Name: "partition-away", Severity: Critical, Alert: "RoutemasterPartitionDown", find: partitionAway},
	{Name: "partition-held", Severity: Critical, Alert: "RoutemasterPartitionDown", find: partitionHeld},
	{Name: "redis-full", Severity: Critical, find: redisFull},
	{Name: "redis-refuses", Severity: Critical, find: redisRefuses},
	{Name: "no-worker", Severity: Critical, find: noWorker},
	{Name: "no-job-threads", Severity: Critical, Alert: "RoutemasterNoJobThreads", find: noJobThreads},
	{Name: "no-machine-threads", Severity: Critical, Alert: "RoutemasterNoMachineThreads", find: noMachineThreads},
	{Name: "events-dropped", Severity: Critical, Over: 5 * time.Minute, Alert: "RoutemasterAutodropActive", find: eventsDropped},
	{Name: "events-unreadable", Severity: Critical, Over: 5 * time.Minute, Alert: "RoutemasterEventsUnreadable", find: eventsUnreadable},
	{Name: "keys-damaged", Severity: Critical, find: keysDamaged},
	{Name: "redis-nearly-full", Severity: Warning, Above: 0.9, Alert: "RoutemasterRedisNearlyFull", find: redisNearlyFull},
	{Name: "not-durable", Severity: Warning, find: notDurable},
	{Name: "account-nearly-full", Severity: Warning, Above: 0.9, Alert: "RoutemasterAccountNearlyFull", find: accountNearlyFull},
	{Name: "gone", Severity: Warning, find: gone},
	{Name: "stalled", Severity: Warning, Over: stalledOver, Alert: "RoutemasterSubscriberStalled", find: stalled},
	{Name: "no-health", Severity: Warning, Over: 5 * time.Minute, Alert: "RoutemasterSubscriberHealthGone", find: noHealth},
	{Name: "failing", Severity: Warning, find: failing},
	{Name: "behind", Severity: Warning, Above: behindAbove, Over: behindOver, Alert: "RoutemasterEventsGrowOld", find: behind},
	{Name: "blocked", Severity: Warning, Over: time.Hour, Alert: "RoutemasterLaneBlocked", find: blocked},
	{Name: "paused", Severity: Warning, Over: time.Hour, find: paused},
	{Name: "workers-busy", Severity: Warning, Above: 0.9, Over: 10 * time.Minute, Alert: "RoutemasterWorkersBusy", find: workersBusy},
	{Name: "labels-errored", Severity: Warning, Alert: "RoutemasterLabelsErrored", find: labelsErrored},
	{Name: "moves-unpublished", Severity: Warning, Alert: "RoutemasterMovesUnpublished", find: movesUnpublished},
	{Name: "job-type-paused", Severity: Warning, Over: time.Hour, Alert: "RoutemasterJobTypePaused", find: jobTypePaused},
	{Name: "jobs-grow-old", Severity: Warning, Above: 300, Alert: "RoutemasterJobsGrowOld", find: jobsGrowOld},
	{Name: "jobs-failed", Severity: Warning, Alert: "RoutemasterJobsFailed", find: jobsFailed},
	{Name: "jobs-expired", Severity: Warning, Alert: "RoutemasterJobsExpired", find: jobsExpired},
	{Name: "credentials-refused", Severity: Warning, Above: 1, find: credentialsRefused},
	{Name: "requests-throttled", Severity: Warning, Above: 1, find: requestsThrottled},
	{Name: "dead-letters", Severity: Note, find: deadLetters},
	{Name: "worker-died", Severity: Note, Over: 15 * time.Minute, find: workerDied},
	{Name: "clocks-apart", Severity: Note, Above: 5, find: clocksApart},
	{Name: "versions-differ", Severity: Note, find: versionsDiffer},
	{Name: "topic-quiet", Severity: Note, Over: quietOver, find: topicQuiet},
	{Name: "nobody-listens", Severity: Note, find: nobodyListens},
}
