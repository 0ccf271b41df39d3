package verdict

import (
	"time"

	"routemaster/internal/overview"
)

// rule is a kind of [overview.Problem].
type rule struct {
	Name     string
	Severity overview.Severity
	// Above is what a number has to exceed. Over is how long something has to hold, or in which time
	// it is counted. They are those of the alert in examples/alerts.yaml, if it names one.
	Above float64
	Over  time.Duration
	Alert string

	find func(j *judge, r rule) []overview.Problem
}

// What else decides.
const (
	// stalledOver is how long a stalled subscriber has acknowledged nothing.
	stalledOver = 15 * time.Minute
	// tookOver is the end of that, which tells of most subscribers that they are not stalled.
	tookOver = 2 * time.Minute
	// behindAbove is the age of the oldest event in seconds, and behindSlope how fast it grows in s/s,
	// over behindOver.
	behindAbove, behindSlope, behindOver = 300, 0.5, 10 * time.Minute
	// flakyShare is of the deliveries in flakyOver.
	flakyShare, flakyOver = 0.05, 5 * time.Minute
	// idleOver is for how long an idle subscriber was sent nothing.
	idleOver = 15 * time.Minute
	// A quiet topic got nothing for quietOver, and usually more than quietAbove events/s.
	quietAbove, quietOver = 1, 5 * time.Minute
)

// rules are all rules, of each severity the most urgent first. Of the rules about subscribers only
// the first that holds shows a subscriber.
var rules = []rule{
	{Name: "redis-unavailable", Severity: overview.Critical, Alert: "RoutemasterRedisUnavailable", find: redisUnavailable},
	{Name: "data-lost", Severity: overview.Critical, Alert: "RoutemasterDataLost", find: dataLost},
	{Name: "partition-away", Severity: overview.Critical, Alert: "RoutemasterPartitionDown", find: partitionAway},
	{Name: "partition-held", Severity: overview.Critical, Alert: "RoutemasterPartitionDown", find: partitionHeld},
	{Name: "redis-full", Severity: overview.Critical, find: redisFull},
	{Name: "redis-refuses", Severity: overview.Critical, find: redisRefuses},
	{Name: "no-worker", Severity: overview.Critical, find: noWorker},
	{Name: "no-job-threads", Severity: overview.Critical, Alert: "RoutemasterNoJobThreads", find: noJobThreads},
	{Name: "no-machine-threads", Severity: overview.Critical, Alert: "RoutemasterNoMachineThreads", find: noMachineThreads},
	{Name: "events-dropped", Severity: overview.Critical, Over: 5 * time.Minute, Alert: "RoutemasterAutodropActive", find: eventsDropped},
	{Name: "events-unreadable", Severity: overview.Critical, Over: 5 * time.Minute, Alert: "RoutemasterEventsUnreadable", find: eventsUnreadable},
	{Name: "keys-damaged", Severity: overview.Critical, find: keysDamaged},
	{Name: "redis-nearly-full", Severity: overview.Warning, Above: 0.9, Alert: "RoutemasterRedisNearlyFull", find: redisNearlyFull},
	{Name: "not-durable", Severity: overview.Warning, find: notDurable},
	{Name: "account-nearly-full", Severity: overview.Warning, Above: 0.9, Alert: "RoutemasterAccountNearlyFull", find: accountNearlyFull},
	{Name: "gone", Severity: overview.Warning, find: gone},
	{Name: "stalled", Severity: overview.Warning, Over: stalledOver, Alert: "RoutemasterSubscriberStalled", find: stalled},
	{Name: "no-health", Severity: overview.Warning, Over: 5 * time.Minute, Alert: "RoutemasterSubscriberHealthGone", find: noHealth},
	{Name: "failing", Severity: overview.Warning, find: failing},
	{Name: "behind", Severity: overview.Warning, Above: behindAbove, Over: behindOver, Alert: "RoutemasterEventsGrowOld", find: behind},
	{Name: "blocked", Severity: overview.Warning, Over: time.Hour, Alert: "RoutemasterLaneBlocked", find: blocked},
	{Name: "paused", Severity: overview.Warning, Over: time.Hour, find: paused},
	{Name: "workers-busy", Severity: overview.Warning, Above: 0.9, Over: 10 * time.Minute, Alert: "RoutemasterWorkersBusy", find: workersBusy},
	{Name: "labels-errored", Severity: overview.Warning, Alert: "RoutemasterLabelsErrored", find: labelsErrored},
	{Name: "moves-unpublished", Severity: overview.Warning, Alert: "RoutemasterMovesUnpublished", find: movesUnpublished},
	{Name: "job-type-paused", Severity: overview.Warning, Over: time.Hour, Alert: "RoutemasterJobTypePaused", find: jobTypePaused},
	{Name: "jobs-grow-old", Severity: overview.Warning, Above: 300, Alert: "RoutemasterJobsGrowOld", find: jobsGrowOld},
	{Name: "jobs-failed", Severity: overview.Warning, Alert: "RoutemasterJobsFailed", find: jobsFailed},
	{Name: "jobs-expired", Severity: overview.Warning, Alert: "RoutemasterJobsExpired", find: jobsExpired},
	{Name: "credentials-refused", Severity: overview.Warning, Above: 1, find: credentialsRefused},
	{Name: "requests-throttled", Severity: overview.Warning, Above: 1, find: requestsThrottled},
	{Name: "dead-letters", Severity: overview.Note, find: deadLetters},
	{Name: "worker-died", Severity: overview.Note, Over: 15 * time.Minute, find: workerDied},
	{Name: "clocks-apart", Severity: overview.Note, Above: 5, find: clocksApart},
	{Name: "versions-differ", Severity: overview.Note, find: versionsDiffer},
	{Name: "topic-quiet", Severity: overview.Note, Over: quietOver, find: topicQuiet},
	{Name: "nobody-listens", Severity: overview.Note, find: nobodyListens},
}
