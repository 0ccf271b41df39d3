package doctor_test

import (
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/machines/engine"
)

// dividedDamage is something that is wrong in a bus with partitions.
type dividedDamage struct {
	name string
	does func(p *dividedPatient)
	// finds has %[1]s for topic a, 2 b.
	finds []string
	// stays: it is skipped.
	stays bool
}

// relayTo01 is the entry that carries events to partition 01.
const relayTo01 = "\x92\xa5relay\x91\xa201"

// A token of another client for each partition, as tokens are spread over three.
func (p *dividedPatient) strange(number int) bus.Token {
	for i := 0; ; i++ {
		token := bus.Token("strange--" + string(rune('a'+i)))
		if int(p.All.Of(token).Number()) == number {
			return token
		}
	}
}

// define gives machines a definition, of one state.
func (p *dividedPatient) define(state string) *engine.Bus {
	all := engine.NewBus(p.All)
	yaml := []byte("state_machines: {m: {states: [{gate: " + state + ", exit_condition: false}]}}")
	definitions, _, err := definition.Load(definition.File{Name: "m", Content: yaml})
	require.NoError(p.T, err)
	definitions.Source = yaml
	_, err = all.Apply(p.ctx, definitions, nil, p.Now())
	require.NoError(p.T, err)
	return all
}

var relayDamages = []dividedDamage{
	{name: "nothing", does: func(*dividedPatient) {}},
	{name: "an outbox without a relay", does: func(p *dividedPatient) {
		p.All[0].Del(p.ctx, p.key(0, "jobs:pending:relay:w1"))
		p.All[0].SRem(p.ctx, p.key(0, "jobs:index:relay"), relayTo01)
	}, finds: []string{`00 relay:01: has no entry in its queue [given one, to be taken now]`}},
	{name: "a relay in no state", does: func(p *dividedPatient) { p.All[0].Del(p.ctx, p.key(0, "jobs:pending:relay:w1")) },
		finds: []string{`00 job ["relay" "01"]: is in jobs:index:relay, but in no state [made instant]`}},
	{name: "a relay in two states", does: func(p *dividedPatient) {
		p.All[0].LPush(p.ctx, p.key(0, "jobs:instant:relay"), relayTo01)
	}, finds: []string{`00 job ["relay" "01"]: is in more than one place [reduced to one]`}},
	{name: "a relay that is not in the index", does: func(p *dividedPatient) {
		p.All[0].SRem(p.ctx, p.key(0, "jobs:index:relay"), relayTo01)
	}, finds: []string{`00 job ["relay" "01"]: is not in jobs:index:relay [added there]`}},
	{name: "a relay of a worker that a scrub does not find", does: func(p *dividedPatient) {
		p.All[0].Del(p.ctx, p.key(0, "jobs:pending:index:relay"))
	}, finds: []string{`00 jobs:pending:relay:w1: belongs to a worker that is not in jobs:pending:index:relay [added there]`}},
	{name: "a relay without an outbox", does: func(p *dividedPatient) {
		p.All[2].LPush(p.ctx, p.key(2, "jobs:instant:relay"), relayTo01)
		p.All[2].SAdd(p.ctx, p.key(2, "jobs:index:relay"), relayTo01)
	}},
	{name: "more events taken than there are", does: func(p *dividedPatient) {
		p.All[0].HSet(p.ctx, p.key(0, "relay:taken"), "01", "AAAABBBBCCCCDDDDEEEE 4 1700000000000", "02", "BAAABBBBCCCCDDDDEEEE 1 1700000000000")
	}, finds: []string{
		`00 relay:taken: has 4 events for 01, and relay:01 has fewer [removed, so that those that are left are relayed, perhaps again]`,
		`00 relay:taken: has 1 events for 02, and relay:02 has fewer [removed, so that those that are left are relayed, perhaps again]`,
	}},
	{name: "what is no head of an outbox", does: func(p *dividedPatient) {
		p.All[0].HSet(p.ctx, p.key(0, "relay:taken"), "01", "rubbish", "00", "AAAABBBBCCCCDDDDEEEE 1 1", "7", "AAAABBBBCCCCDDDDEEEE 1 1")
	}, finds: []string{
		`00 relay:taken: has "rubbish" for "01", which is no head of an outbox [removed]`,
		`00 relay:taken: has "AAAABBBBCCCCDDDDEEEE 1 1" for "00", which is no head of an outbox [removed]`,
		`00 relay:taken: has "AAAABBBBCCCCDDDDEEEE 1 1" for "7", which is no head of an outbox [removed]`,
	}},
	{name: "a topic that is relayed to its home, and to what is no partition", does: func(p *dividedPatient) {
		p.All[0].HSet(p.ctx, p.key(0, "relays:"+string(p.a)), "00", "1", "03", "2", "1", "2", "x", "")
	}, finds: []string{
		`00 relays:%[1]s: has "00", which is no other partition of the bus [removed]`,
		`00 relays:%[1]s: has "03", which is no other partition of the bus [removed]`,
		`00 relays:%[1]s: has "1", which is no other partition of the bus [removed]`,
		`00 relays:%[1]s: has "x", which is no other partition of the bus [removed]`,
	}},
	{name: "a generation that is given again", does: func(p *dividedPatient) { p.All[0].Del(p.ctx, p.key(0, "relay:generation")) },
		finds: []string{`00 relay:generation: is "", and 2 was given to relays:%[2]s [set right]`}},
	{name: "a generation that is no number", does: func(p *dividedPatient) {
		p.All[0].Set(p.ctx, p.key(0, "relay:generation"), "x", 0)
	}, finds: []string{`00 relay:generation: is "x", and 2 was given to relays:%[2]s [set right]`}},
	{name: "outboxes to no other partition", does: func(p *dividedPatient) {
		p.All[0].RPush(p.ctx, p.key(0, "relay:00"), "x")
		p.All[0].RPush(p.ctx, p.key(0, "relay:03"), "x")
		p.All[0].RPush(p.ctx, p.key(0, "relay:1"), "x")
	}, finds: []string{
		`00 relay:00: is for no other partition of the bus []`,
		`00 relay:03: is for no other partition of the bus []`,
		`00 relay:1: is not a key of the layout []`,
	}, stays: true},
	{name: "relays that are of another type", does: func(p *dividedPatient) {
		p.All[2].Set(p.ctx, p.key(2, "relay:01"), "x", 0)
		p.All[2].Set(p.ctx, p.key(2, "relays:"+string(p.TopicIn(2, 0))), "x", 0)
	}, finds: []string{
		`02 relay:01: is a string, must be a list []`,
		`02 relays:topic_a: is a string, must be a hash []`,
	}, stays: true},
	{name: "what belongs to another partition", does: func(p *dividedPatient) {
		p.All[2].HSet(p.ctx, p.key(2, "subscriber:"+string(p.other)), "callback", "https://x.example/")
		p.All[2].SAdd(p.ctx, p.key(2, "subscribers"), string(p.other))
		p.All[1].HSet(p.ctx, p.key(1, "topic:"+string(p.a)), "publisher", "publisher--1", "counter", 1)
		p.All[1].HSet(p.ctx, p.key(1, "relays:"+string(p.a)), "02", 1)
	}, finds: []string{
		`02 subscriber:reader: belongs to another partition []`,
		`01 topic:%[1]s: is of a topic of another partition []`,
		`01 relays:%[1]s: is of a topic of another partition []`,
	}, stays: true},
	{name: "a job type of another partition", does: func(p *dividedPatient) {
		bytes := jobs.TypeBytes
		p.All[2].HSet(p.ctx, p.key(2, "accounts"), "root", 2*bytes, "*", 2*bytes)
		p.All[2].HSet(p.ctx, p.key(2, "work:type:"+p.TypeIn(0, 0)), "strategy", "at_least_once", "kept", bytes)
		p.All[2].SAdd(p.ctx, p.key(2, "work:types"), p.TypeIn(0, 0))
		p.All[2].HSet(p.ctx, p.key(2, "work:type:"+p.TypeIn(2, 0)), "strategy", "at_least_once", "kept", bytes)
		p.All[2].SAdd(p.ctx, p.key(2, "work:types"), p.TypeIn(2, 0))
	}, finds: []string{`02 work:type:type-0: belongs to another partition []`}, stays: true},
	{name: "a partition that says to be another", does: func(p *dividedPatient) {
		p.All[1].Set(p.ctx, p.key(1, "partition"), "1/12", 0)
		p.All[1].HSet(p.ctx, p.key(1, "batches:gauges:batch"), "x", "1")
		p.All[1].HDel(p.ctx, p.key(1, "api_tokens:by_token"), string(p.local))
	}, finds: []string{`01 partition: is "1/12", must be "1/3": the partition was not examined []`}, stays: true},
	{name: "a partition that is of another type", does: func(p *dividedPatient) {
		p.All[1].Del(p.ctx, p.key(1, "partition"))
		p.All[1].RPush(p.ctx, p.key(1, "partition"), "x")
	}, finds: []string{`01 partition: is a list, must be a string []`}, stays: true},
}

// acrossDamages are between partitions.
var acrossDamages = []dividedDamage{
	{name: "tokens that others lack", does: func(p *dividedPatient) {
		p.All[0].HDel(p.ctx, p.key(0, "api_tokens:by_token"), string(p.other))
		p.All[2].HDel(p.ctx, p.key(2, "api_tokens:by_token"), string(p.other), string(p.local))
	}, finds: []string{
		`00 api_tokens:by_token: lacks reader, of partition 01 [copied from there]`,
		`02 api_tokens:by_token: lacks reader, of partition 00 [copied from there]`,
		`02 api_tokens:by_token: lacks reader, of partition 01 [copied from there]`,
	}},
	{name: "a token of another client", does: func(p *dividedPatient) {
		p.All[2].HSet(p.ctx, p.key(2, "api_tokens:by_token"), string(p.other), "zoe")
	}, finds: []string{`02 api_tokens:by_token: has a token of "zoe", which is of "reader" in its partition 01 [copied from there]`}},
	{name: "a token that its own partition lacks", does: func(p *dividedPatient) {
		p.All[0].HSet(p.ctx, p.key(0, "api_tokens:by_token"), string(p.strange(1)), "zoe")
		p.All[2].HSet(p.ctx, p.key(2, "api_tokens:by_token"), string(p.strange(1)), "zoe")
	}, finds: []string{
		`00 api_tokens:by_token: has zoe, and its partition 01 does not: register the token again, or delete it []`,
		`02 api_tokens:by_token: has zoe, and its partition 01 does not: register the token again, or delete it []`,
	}, stays: true},
	{name: "a partition that has lost all of its tokens", does: func(p *dividedPatient) {
		p.All[1].HDel(p.ctx, p.key(1, "api_tokens:by_token"), string(p.other))
	}, finds: []string{
		`00 api_tokens:by_token: has reader, and its partition 01 does not: register the token again, or delete it []`,
		`02 api_tokens:by_token: has reader, and its partition 01 does not: register the token again, or delete it []`,
	}, stays: true},
	{name: "a token with a subscriber elsewhere, which nobody may remove", does: func(p *dividedPatient) {
		token := string(p.strange(1))
		p.All[1].HSet(p.ctx, p.key(1, "api_tokens:by_token"), token, "yan")
		p.All[0].HSet(p.ctx, p.key(0, "api_tokens:by_token"), token, "zoe")
		p.All[2].HSet(p.ctx, p.key(2, "subscriber:"+token), "callback", "https://z.example/")
		p.All[2].SAdd(p.ctx, p.key(2, "subscribers"), token)
	}, finds: []string{
		`00 api_tokens:by_token: has a token of "zoe", which is of "yan" in its partition 01 []`,
		`02 api_tokens:by_token: lacks yan, of partition 01 []`,
		`02 subscriber:client-e1a76c85: belongs to another partition []`,
	}, stays: true},
	{name: "a topic that is not relayed", does: func(p *dividedPatient) {
		p.All[0].HDel(p.ctx, p.key(0, "relays:"+string(p.b)), "01")
	}, finds: []string{`00 relays:%[2]s: lacks 01, where the topic has subscribers [added there]`}},
	{name: "a topic that its home does not know", does: func(p *dividedPatient) {
		p.All[0].SRem(p.ctx, p.key(0, "topics"), string(p.b))
	}, finds: []string{`00 topics: lacks %[2]s, which has subscribers in partition 01 [added there]`}},
	{name: "a topic of which its home has nothing", does: func(p *dividedPatient) {
		p.All[0].SRem(p.ctx, p.key(0, "topics"), string(p.b))
		p.All[0].Del(p.ctx, p.key(0, "relays:"+string(p.b)))
	}, finds: []string{
		`00 topics: lacks %[2]s, which has subscribers in partition 01 [added there]`,
		`00 relays:%[2]s: lacks 01, where the topic has subscribers [added there]`,
	}},
	{name: "definitions of machines that others lack, and others ahead of them", does: func(p *dividedPatient) {
		p.define("a")
		p.All[1].Del(p.ctx, p.key(1, "machines:definitions"))
		p.All[2].HSet(p.ctx, p.key(2, "machines:definitions"), "version", 7)
	}, finds: []string{
		`01 machines:definitions: has version "", and partition 00 has "1" [made the same]`,
		`02 machines:definitions: has version "7", and partition 00 has "1" [made the same]`,
	}},
	{name: "other definitions of the same version", does: func(p *dividedPatient) {
		p.define("a")
		p.All[2].HSet(p.ctx, p.key(2, "machines:definitions"), "applied_at", 5)
	}, finds: []string{`02 machines:definitions: has another version 1 than partition 00 [made the same]`}},
	{name: "a label of another partition", does: func(p *dividedPatient) {
		require.False(p.T, p.All[1].Owns("m/ann"))
		_, err := p.define("a").All()[1].Add(p.ctx, "m", "ann", machines.Object{}, p.Now())
		require.NoError(p.T, err)
	}, finds: []string{`01 machines:label:m/ann: belongs to another partition []`}, stays: true},
	{name: "a topic whose only subscriber has no token", does: func(p *dividedPatient) {
		for i := range p.All {
			p.All[i].HDel(p.ctx, p.All[i].Namespace()+"api_tokens:by_token", string(p.other))
		}
		p.All[0].HDel(p.ctx, p.key(0, "relays:"+string(p.b)), "01")
	}, finds: []string{`00 relays:%[2]s: lacks 01, where the topic has subscribers []`}, stays: true},
}
