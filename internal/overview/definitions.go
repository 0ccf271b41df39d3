package overview

// Definition says what a figure is.
type Definition struct{ Figure, Is string }

// Definitions are those of all figures that people see, each in one or two sentences.
var Definitions = []Definition{
	{"in/s", "Events published in a second, over the last 10 s."},
	{"out/s", "Events acknowledged by subscribers in a second, over the last 10 s. One event to 100 subscribers is 1 in and 100 out."},
	{"queued", "Events that wait, once for each subscriber. What is being delivered counts."},
	{"oldest", "Age of the oldest event that waits, since the bus received it, by the clock of Redis. " +
		"It is not known of a subscriber whose events are not in the 2,000 oldest batches of the bus."},
	{"failing, of all", "Subscribers that are gone, stalled or failing, of all subscribers."},
	{"failed", "Share of the deliveries of the last minute that were not acknowledged. A delivery is a batch; each attempt counts."},
	{"dropped", "Events that the bus dropped because Redis was about to be full. Those of deleted subscribers do not count."},
	{"dead letters", "Events that the bus has given up on, and keeps for a while."},
	{"health", "0 to 100. Each success adds to it and each failure takes some, by the numbers that the operator has set. With it stands the change in the last minute."},
	{"tried", "Time since the last attempt to deliver, whether it succeeded or not."},
	{"next try", "When the bus delivers again, if it waits: because deliveries have failed, to keep to the pace, or because of a pause."},
	{"events", "Events ever published to the topic. Deleting the topic begins anew."},
	{"sent", "Events that the subscriber has ever acknowledged."},
	{"batches", "Lists of events that wait, each for one delivery."},
	{"redis", "Memory that Redis uses. Above the high mark the bus drops the oldest batches, down to the low mark."},
	{"workers", "Worker processes heard of in the last 30 s."},
	{"busy", "Threads that deliver now, of all threads of workers heard of in the last 30 s."},
	{"instant", "Jobs of a queue that are ready to run."},
	{"scheduled", "Jobs of a queue that are not due yet, or not their turn."},
	{"due", "Deliveries that are due now or soon."},
	{"waiting", "Jobs of a type that are due, and held back by its limit of jobs in progress or by a pause."},
	{"in progress", "Jobs of a type that its service has, and how many it may have."},
	{"errored", "Labels whose action is not tried again."},
	{"unpublished", "Moves of labels that are still to be published."},
	{"clock", "How far the clock of a process is ahead of that of Redis, as far as that is known."},
	{"since", "Since when it is known to hold: the first point of the history from which on it did. The history goes back 6 h."},
	{string(Gone), "The subscriber's last answer was 410: it wants no more events."},
	{string(PausedState), "Nothing is delivered until somebody resumes it, or the pause ends."},
	{string(Stalled), "Events have waited for 15 min, and nothing was acknowledged in them."},
	{string(Failing), "The bus waits because deliveries have failed, or there were nothing but failures in the last minute."},
	{string(Behind), "The oldest event is older than 5 min, and in the last 10 min that age grew by more than half a second a second."},
	{string(Flaky), "Of the deliveries of the last 5 min 5 % or more failed, not counting those before the first success."},
	{string(Idle), "Nothing waits, and no delivery was attempted for 15 min."},
	{string(OK), "None of the other states."},
	{string(Unclaimed), "Nobody has published to the topic."},
	{string(Unheard), "Events come, and no client is subscribed."},
	{string(Quiet), "Nothing was published for 5 min, though the mean of the last 6 h is above 1 event/s."},
}
