package doctor

import (
	"context"
	"errors"
	"fmt"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// strayTopic is a topic whose home does not relay it to a partition with subscribers. One that is
// relayed in vain is none: the end of a subscription leaves that to the next event of the topic, or
// to the housekeeping.
type strayTopic struct {
	topic    bus.TopicName
	home, at rdb.Number
	// Whether the home lists the topic, since which subscription it relays it there, and how many
	// subscribers the topic has there.
	listed      rdb.Reply[bool]
	generation  rdb.Reply[string]
	subscribers rdb.Reply[int64]
}

// topics returns the topics that differ in the scan.
func (c *Comparison) topics() (candidates []misfit) {
	for at, v := range c.views {
		for topic := range v.subscribed {
			home := c.all.Home(bus.TopicName(topic)).Partition().Number()
			of, examined := c.views[home]
			if !examined || home == at || !v.subscribed[topic] {
				continue
			}
			_, listed := of.topics[topic]
			if _, relayed := of.relayed[topic][at.String()]; !listed || !relayed {
				candidates = append(candidates, &strayTopic{topic: bus.TopicName(topic), home: home, at: at})
			}
		}
	}
	return candidates
}

func (t *strayTopic) key() string { return string(t.topic) }

func (t *strayTopic) partitions() [2]rdb.Number { return [2]rdb.Number{t.home, t.at} }

func (t *strayTopic) ask(ctx context.Context, c *Comparison, of rdb.Number, pipe rdb.Commands) {
	if of == t.at {
		t.subscribers = pipe.SCard(ctx, c.keysOf(of).TopicSubscribers(t.topic))
		return
	}
	outboxes := layout.Keys{Namespace: c.partition(of).Namespace()}.Outboxes(t.topic)
	t.generation = pipe.HGet(ctx, outboxes, t.at.String())
	t.listed = pipe.SIsMember(ctx, c.keysOf(of).Topics(), string(t.topic))
}

// state ignores how many subscribers there are. An unreadable key was reported already, and fits.
func (t *strayTopic) state() (state string, fits bool) {
	for _, reply := range []rdb.AnyReply{t.listed, t.generation, t.subscribers} {
		if rdb.IsWrongType(reply.Err()) {
			return "", true
		}
	}
	subscribed := t.subscribers.Val() > 0
	fits = !subscribed || t.listed.Val() && t.generation.Val() != ""
	return fmt.Sprint(t.listed.Val(), t.generation.Val(), subscribed), fits
}

// judge repairs by relaying the topic, as a subscription would.
func (t *strayTopic) judge(ctx context.Context, c *Comparison) (findings []Finding, repair func() error, err error) {
	home, outboxes := c.partition(t.home).NumberIfSeveral(), keys.Outboxes(t.topic)
	token, gone, err := t.subscriber(ctx, c)
	if gone || err != nil {
		return nil, nil, err
	}
	remedy := ""
	if token != "" {
		remedy = "added there"
	}
	if t.generation.Val() == "" {
		problem := fmt.Sprintf("lacks %v, where the topic has subscribers", t.at)
		findings = append(findings, Finding{Partition: home, Key: outboxes, Problem: problem, Remedy: remedy})
	}
	if !t.listed.Val() {
		problem := fmt.Sprintf("lacks %s, which has subscribers in partition %v", t.topic, t.at)
		findings = append(findings, Finding{Partition: home, Key: keys.Topics(), Problem: problem, Remedy: remedy})
	}
	if token == "" {
		return findings, nil, nil
	}
	return findings, func() error {
		err := c.all.Relay(ctx, token, []bus.TopicName{t.topic})
		if errors.Is(err, bus.ErrTokenUnknown) { // the subscriber has just gone
			return nil
		}
		return err
	}, nil
}

// someSubscribers is among how many one is looked for that has a token.
const someSubscribers = 100

// subscriber is one of the topic's, in whose name the topic is relayed; empty if none has a token.
// Gone: there is none any more.
func (t *strayTopic) subscriber(ctx context.Context, c *Comparison) (token bus.Token, gone bool, err error) {
	var members rdb.Reply[[]string]
	if err := c.read(ctx, c.partition(t.at), func(pipe rdb.Commands) {
		members = pipe.SRandMemberN(ctx, c.keysOf(t.at).TopicSubscribers(t.topic), someSubscribers)
	}); err != nil || members == nil || len(members.Val()) == 0 {
		return "", true, err
	}
	tokens := make([]bus.Token, len(members.Val()))
	for i, member := range members.Val() {
		tokens[i] = bus.Token(member)
	}
	known, err := c.all.All()[t.at].FindTokens(ctx, tokens)
	for token = range known {
		break
	}
	return token, false, err
}
