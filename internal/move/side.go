package move

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/format"
	"routemaster/internal/jobs"
	"routemaster/internal/machines/engine"
	"routemaster/internal/overview"
	"routemaster/internal/overview/samples"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// side is one of the two buses.
type side struct {
	*store.Bus
	name       string
	partitions []*rdb.Partition
	keys       []store.Keys // of each partition
	marks      []mark       // of each partition, as they were read
	step       func(name string)
}

func newSide(name string, partitions []*rdb.Partition, step func(name string)) *side {
	s := &side{name: name, partitions: partitions, step: step}
	for _, p := range partitions {
		s.keys = append(s.keys, store.Keys{Namespace: p.Namespace()})
	}
	s.useMark(mark{})
	return s
}

// blame says in an error of Redis which of the two it is.
func (s *side) blame(err error) error {
	switch {
	case errors.Is(err, bus.ErrMoving):
		return err
	case errors.Is(err, bus.ErrUnavailable):
		return fmt.Errorf("%s: %w", s.name, err)
	case rdb.HasCode(err, "WRONGTYPE"):
		return fmt.Errorf("%s: %w; `rtm doctor` in the environment of its web says what is damaged", s.name, err)
	}
	return err
}

// useMark has all that is written from now on need a mark: see [fence.Script].
func (s *side) useMark(m mark) {
	var all []*store.Store
	for _, p := range s.partitions {
		all = append(all, store.New(p, store.Options{Mark: m.String()}))
	}
	s.Bus = store.NewBus(all...)
}

// requireEmpty fails unless the bus is new: what it had would be mixed up with what is moved.
func (s *side) requireEmpty(ctx context.Context) error {
	found, err := s.contents(ctx)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("the Redis to move to is not empty, it has %s: give an empty one, or another namespace, "+
			"and start no web there before the first `rtm move`", found[0])
	}
	return err
}

// requireBus fails if there is none: then --from is wrong.
func (s *side) requireBus(ctx context.Context) error {
	found, err := s.contents(ctx)
	if err == nil && len(found) == 0 {
		err = errors.New("the Redis to move from has no bus, or one that is new: give the URL and the namespace of the one that is in use")
	}
	return err
}

// contents are the words for what the bus has.
func (s *side) contents(ctx context.Context) (found []string, err error) {
	for i, p := range s.partitions {
		k := s.keys[i]
		counts := map[string]rdb.Reply[int64]{}
		err := p.Pipelined(ctx, "look at the bus", func(pipe rdb.Commands) {
			counts["tokens"] = pipe.HLen(ctx, k.Tokens())
			counts["topics"] = pipe.SCard(ctx, k.Topics())
			counts["subscribers"] = pipe.SCard(ctx, k.Subscribers())
			counts["batches"] = pipe.ZCard(ctx, k.BatchesIndex())
			counts["job types"] = pipe.SCard(ctx, jobs.Keys{Namespace: p.Namespace()}.Types())
			counts["definitions of state machines"] = pipe.HLen(ctx, engine.Keys{Namespace: p.Namespace()}.Definitions())
		})
		if err != nil {
			return nil, s.blame(err)
		}
		for _, what := range slices.Sorted(maps.Keys(counts)) {
			if counts[what].Val() > 0 {
				found = append(found, what)
			}
		}
	}
	return found, nil
}

// requireMovable fails while the bus has what is not moved, and must not be lost.
func (s *side) requireMovable(ctx context.Context) error {
	for i, p := range s.partitions {
		k := s.keys[i]
		var migration rdb.Reply[int64]
		var rotations, types rdb.Reply[[]string]
		var outline rdb.Reply[[]any]
		err := p.Pipelined(ctx, "look at the old bus", func(pipe rdb.Commands) {
			rotations, migration = pipe.HKeys(ctx, k.Rotations()), pipe.Exists(ctx, k.Migration())
			types = pipe.SMembers(ctx, jobs.Keys{Namespace: p.Namespace()}.Types())
			outline = pipe.HMGet(ctx, engine.Keys{Namespace: p.Namespace()}.Definitions(), "version", "outline")
		})
		if err != nil {
			return s.blame(err)
		}
		machines := map[string]any{}
		version, text := rdb.Text(outline.Val()[0]), rdb.Text(outline.Val()[1])
		if version != "" && json.Unmarshal([]byte(text), &machines) != nil {
			machines = map[string]any{text: nil} // nobody can say how many
		}
		switch {
		case len(rotations.Val()) > 0:
			return s.errRotating(ctx, i, rotations.Val())
		case migration.Val() > 0:
			return fmt.Errorf("the Ruby original may run here too: stop it, run `rtm migrate --apply` until nothing is left to do, "+
				"and wait for the key %s to expire, a day after", store.Keys{}.Migration())
		case len(types.Val()) > 0:
			return fmt.Errorf("the bus has %s, and jobs are not moved yet: have them end, delete the types (%s), "+
				"wait until `rtm job list` shows no job, and make them again on the new bus",
				format.Plural(int64(len(types.Val())), "job type"), bus.Commands("job type del", types.Val()))
		case len(machines) > 0:
			return fmt.Errorf("the bus has %s, and these are not moved yet: remove them (`rtm machine apply FILE`, where the file has only `state_machines: {}`), "+
				"and apply them again on the new bus, where labels begin anew", format.Plural(int64(len(machines)), "state machine"))
		}
	}
	return nil
}

// errRotating says which clients' tokens are being changed, by the old ones that a partition has.
func (s *side) errRotating(ctx context.Context, partition int, old []string) error {
	names, err := s.partitions[partition].HMGet(ctx, s.keys[partition].Tokens(), old...).Result()
	if err != nil {
		return s.blame(rdb.Wrap("list tokens", err))
	}
	var clients []string
	for _, name := range names {
		if name := rdb.Text(name); name != "" {
			clients = append(clients, name)
		}
	}
	if len(clients) == 0 {
		clients = []string{"OLD"}
	}
	return fmt.Errorf("a rotation is under way of %s: finish that first, with %s",
		format.Plural(int64(len(old)), "token"), bus.Commands("token rotate", clients))
}

// processes are the web and worker processes of the bus that live.
func (s *side) processes(ctx context.Context, now time.Time) ([]overview.Process, error) {
	all, err := samples.Processes(ctx, s.partitions[0], now)
	return all, s.blame(err)
}

// requireVersion fails if a process may not know of moves, because it is of another version.
func (s *side) requireVersion(ctx context.Context, version string, now time.Time) error {
	all, err := s.processes(ctx, now)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(p overview.Process) bool { return p.Version != version })
	if version == "" || i < 0 {
		return nil
	}
	return fmt.Errorf("%s %d on %s is of the version %q and this is %q: it may not know of moves, and would take publishes that are lost; "+
		"have all processes run one version (or it has stopped less than a minute ago: then wait that long)", all[i].Kind, all[i].PID, all[i].Host, all[i].Version, version)
}
