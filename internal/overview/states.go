package overview

// subscriberState returns how a subscriber is.
func (j *judge) subscriberState(sub Subscriber) State {
	switch {
	case sub.Failure == "410":
		return Gone
	case sub.Hold == Paused:
		return PausedState
	case j.isStalled(sub):
		return Stalled
	case isFailing(sub):
		return Failing
	case j.isBehind(sub):
		return Behind
	case j.isFlaky(sub):
		return Flaky
	case sub.Queued == 0 && !attempted(sub, idleOver.Seconds()):
		return Idle
	}
	return OK
}

// attempted reports whether a delivery was attempted in the last so many seconds.
func attempted(sub Subscriber, seconds float64) bool {
	return sub.SinceAttempt != nil && *sub.SinceAttempt <= seconds
}

// delivers reports whether the subscriber has acknowledged something in the last seconds.
func delivers(sub Subscriber) bool { return sub.Rate != nil && *sub.Rate > 0 }

// older reports whether the oldest event is older than so many seconds, and not only waits for
// others in a batch.
func older(sub Subscriber, seconds float64) bool {
	return sub.OldestAge != nil && *sub.OldestAge > seconds && *sub.OldestAge > sub.Timeout
}

// isStalled reports whether events have waited for 15 min, and none was acknowledged in that time.
// Where the history does not go back that far, the age of the oldest event decides, unless the last
// attempt, which was not long ago, succeeded.
func (j *judge) isStalled(sub Subscriber) bool {
	if sub.Queued == 0 || delivers(sub) || sub.OldestAge != nil && *sub.OldestAge <= sub.Timeout {
		return false
	}
	track := j.fast(Subject{Subscriber: sub.Name})
	// Most have taken something a moment ago: the rest of the history need not be read.
	if track.acknowledges(tookOver) || track.acknowledges(stalledOver) {
		return false
	}
	if is, known := track.all(stalledOver, takesNothing); known {
		return is
	}
	took := sub.Failure == "" && attempted(sub, stalledOver.Seconds())
	return !took && older(sub, stalledOver.Seconds())
}

// takesNothing is that events waited in a step, and none was acknowledged.
var takesNothing = condition{Queued, Succeeded, func(queued, succeeded float32) bool {
	return queued > 0 && !(succeeded > 0)
}}

// isFailing reports whether a subscriber is throttled, or there were only failures in the last
// minute.
func isFailing(sub Subscriber) bool {
	return sub.Throttled || sub.Failed != nil && *sub.Failed == 1 && !delivers(sub)
}

func (j *judge) isBehind(sub Subscriber) bool {
	if !older(sub, behindAbove) {
		return false
	}
	slope, known := j.fast(Subject{Subscriber: sub.Name}).slope(behindOver, Oldest)
	return known && slope > behindSlope
}

// isFlaky reports whether 5 % of the deliveries of the last 5 min failed. Failures before the first
// success do not count: a subscriber that has recovered is well.
func (j *judge) isFlaky(sub Subscriber) bool {
	if !attempted(sub, flakyOver.Seconds()) {
		return false
	}
	var succeeded, failed float64
	track := j.fast(Subject{Subscriber: sub.Name})
	failures := track.last(flakyOver, Failed)
	for i, n := range track.last(flakyOver, Succeeded) {
		if succeeded > 0 && failures[i] > 0 {
			failed += float64(failures[i])
		}
		if n > 0 {
			succeeded += float64(n)
		}
	}
	return failed > 0 && failed >= flakyShare*(succeeded+failed)
}

// topicState returns how a topic is.
func (j *judge) topicState(t Topic) State {
	comes := t.Rate != nil && *t.Rate > 0
	lately, known := sumOf(j.fast(Subject{Topic: t.Name}).last(quietOver, In))
	switch {
	case t.Publisher == "" && t.Events == 0:
		return Unclaimed
	case t.Subscribers == 0 && (comes || lately > 0):
		return Unheard
	case !comes && lately == 0 && known > 0 && j.usually(t) > quietAbove:
		return Quiet
	}
	return OK
}

// usually returns the mean rate of a topic in events/s over the last 6 h, 0 if it is not known.
func (j *judge) usually(t Topic) float64 {
	track, ok := j.tracks(Subject{Topic: t.Name}, Slow)
	total, n := sumOf(track.Values(In))
	if !ok || n == 0 {
		return 0
	}
	return total / float64(n)
}
