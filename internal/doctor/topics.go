package doctor

import (
	"routemaster/internal/bus"
)

// findOfTopics looks for topics and subscriptions that do not fit together.
func findOfTopics(e *Examination) {
	findTopics(e)
	findSubscriptions(e)
}

func findTopics(e *Examination) {
	for name := range e.Each(keys.Topic("")) {
		e.mustList(keys.Topic(bus.TopicName(name)), keys.Topics(), name, nil)
	}
}

func findSubscriptions(e *Examination) {
	for token, topics := range e.Each(keys.SubscriberTopics("")) {
		for topic := range topics {
			findSubscription(e, bus.Token(token), bus.TopicName(topic))
		}
	}
	for topic, tokens := range e.Each(keys.TopicSubscribers("")) {
		for token := range tokens {
			if !e.Has(keys.SubscriberTopics(bus.Token(token)), topic) { // else it was looked at
				findSubscription(e, bus.Token(token), bus.TopicName(topic))
			}
		}
	}
}

// findSubscription checks a subscription that at least one side lists.
func findSubscription(e *Examination, token bus.Token, topic bus.TopicName) {
	ofSubscriber, ofTopic := e.Keys.SubscriberTopics(token), e.Keys.TopicSubscribers(topic)
	listedBySubscriber := e.Has(keys.SubscriberTopics(token), string(topic))
	listedByTopic := e.Has(keys.TopicSubscribers(topic), string(token))
	sides := []Check{
		Is(listedBySubscriber, "SISMEMBER", ofSubscriber, string(topic)),
		Is(listedByTopic, "SISMEMBER", ofTopic, string(token)),
	}
	listed := sides[0] // one that is there, and stays if the other is repaired
	if !listedBySubscriber {
		listed = sides[1]
	}
	all, callback := e.Keys.Subscribers(), []any{"HSTRLEN", e.Keys.Subscriber(token), "callback"}
	switch {
	case e.Has(keys.Subscribers(), string(token)):
		sides = append(sides, Is(1, "SISMEMBER", all, string(token)))
	case e.HasCallback(string(token)):
		sides = append(sides, Not(0, callback...))
	default:
		e.Add(ofSubscriber, "names "+string(topic)+", or is named there, and there is no such subscriber",
			"removed from both", append(sides, Is(0, "SISMEMBER", all, string(token)), Is(0, callback...)),
			Command{"SREM", ofSubscriber, string(topic)}, Command{"SREM", ofTopic, string(token)})
		return
	}
	if listedBySubscriber != listedByTopic {
		e.Add(ofSubscriber, "and "+keys.TopicSubscribers(topic)+" differ", "added to both", sides,
			Command{"SADD", ofSubscriber, string(topic)}, Command{"SADD", ofTopic, string(token)})
	}
	if !e.Has(keys.Topics(), string(topic)) && e.Elements[keys.Topic(topic)] == nil {
		e.Add(ofSubscriber, "names "+string(topic)+", or is named there, which is not in "+keys.Topics(),
			"added there", append(sides[2:], listed, Is(0, "EXISTS", e.Keys.Topic(topic)),
				Is(0, "SISMEMBER", e.Keys.Topics(), string(topic))),
			Command{"SADD", e.Keys.Topics(), string(topic)})
	}
}
