// Package lanes says where the batches of a subscriber with several lanes stand, for those who look
// at them: store/lua/lib/generations.lua moves them.
package lanes

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Generation is the lanes of a subscriber between two changes of them. Its batches wait for those
// of the generations before.
type Generation struct {
	// Name is empty for the one lane that a subscriber has by default.
	Name string
	// Lanes is how many lanes there are, at least 1.
	Lanes int
	// Batches is how many batches are left of an older generation. It is 0 for the last, to which
	// is published: its batches are those that are of no other.
	Batches int64
}

// Lane returns the name by which the queue knows a lane of a subscriber, from 0 on.
func (g Generation) Lane(token bus.Token, lane int) string {
	if g.Name == "" {
		return string(token)
	}
	return string(token) + "/" + g.Name + "/" + strconv.Itoa(lane)
}

// Generations are those of a subscriber, the oldest first; there is at least one.
type Generations []Generation

// Default are those of a subscriber that has the default lane and has had no others of late: so it
// is with nearly all.
var Default = Generations{{Lanes: 1}}

// IsDefault is whether they are [Default]: then all batches of the subscriber stand in one lane.
func (all Generations) IsDefault() bool { return slices.Equal(all, Default) }

// Of reads the generations of a subscriber from its options, the hash of the token that holds the
// subscription.
func Of(options map[string]string) Generations {
	stored := make([]any, len(Fields))
	for i, name := range Fields {
		stored[i] = options[name]
	}
	return Parse(stored)
}

// Fields are the fields of a subscriber's options that [Parse] reads.
var Fields = []string{"older", "generation", "lanes"}

// Parse reads generations from the values of [Fields], which may be followed by others. What cannot
// be read is left out.
func Parse(stored []any) Generations {
	var all Generations
	for part := range strings.FieldsSeq(rdb.Text(stored[0])) {
		name, rest, _ := strings.Cut(part, "/")
		lanes, batches, ok := strings.Cut(rest, "/")
		if ok {
			all = append(all, Generation{name, store.LaneCount(lanes), rdb.Integer(batches, 0)})
		}
	}
	return append(all, Generation{Name: rdb.Text(stored[1]), Lanes: store.LaneCount(rdb.Text(stored[2]))})
}

// Last is the generation that is published to.
func (all Generations) Last() Generation { return all[len(all)-1] }

// Fence is how many batches the others wait for: those of older generations.
func (all Generations) Fence() (batches int64) {
	for _, g := range all[:len(all)-1] {
		batches += g.Batches
	}
	return batches
}

// Place is where a batch stands: in a lane of a generation.
type Place struct {
	Generation Generation
	Lane       int
}

// Places reads the places of batches of the subscriber, without a round trip if all stand in one
// lane. It fails with [bus.ErrUnavailable].
func (all Generations) Places(ctx context.Context, p *rdb.Partition, batches []bus.BatchID) ([]Place, error) {
	places := slices.Repeat([]Place{inDefaultLane}, len(batches))
	if all.IsDefault() {
		return places, nil
	}
	states, keys := make([]rdb.Reply[[]any], len(batches)), store.Keys{Namespace: p.Namespace()}
	err := p.Reads(ctx, "read places", func(pipe rdb.Commands) {
		for i, batch := range batches {
			states[i] = pipe.HMGet(ctx, keys.BatchState(batch), "generation", "lane")
		}
	})
	if err != nil {
		return nil, err
	}
	for i, state := range states {
		if state.Err() == nil {
			places[i] = all.place(rdb.Text(state.Val()[0]), rdb.Text(state.Val()[1]))
		}
	}
	return places, nil
}

var inDefaultLane = Place{Generation: Default[0]}

// place is that of a batch, by what its state says. One of a generation that its subscriber does
// not have is in the default lane.
func (all Generations) place(generation, lane string) Place {
	for _, g := range all {
		if generation != "" && generation == g.Name {
			return Place{g, int(rdb.Integer(lane, 0))}
		}
	}
	return inDefaultLane
}
