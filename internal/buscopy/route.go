package buscopy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// owner decides where a key or an element belongs: by a name, which is known once the pipe that
// asks for it has run. An element without an owner has none, and goes to the first partition: the
// worker that takes it finds that. More, if given, asks for the rest in a second pipe.
type owner struct {
	name  func() (string, error)
	more  func(rdb.Commands) owner
	isNot bool // of the target: it is left out
}

func named(name string) owner { return owner{name: func() (string, error) { return name, nil }} }

// said is an owner that the first of some replies names that names any.
func said(replies ...rdb.Reply[string]) owner {
	return owner{name: func() (string, error) {
		for _, reply := range replies {
			if name, err := reply.Result(); name != "" || !rdb.Answered(err) {
				return name, rdb.Wrap("look whose it is", err)
			}
		}
		return "", nil
	}}
}

// askOwner asks for the owner of a key, given the rest after its prefix, or of an element by its
// ID.
func askOwner(ctx context.Context, pipe rdb.Commands, from *rdb.Partition, whose layout.Whose, rest string) owner {
	ns := from.Namespace()
	switch whose {
	case layout.OfBatch, layout.EachBatch:
		id := bus.BatchID(rest)
		return said(pipe.LIndex(ctx, ns+keys.Batch(id), 0), pipe.LIndex(ctx, ns+keys.Original(id), 0))
	case layout.OfLetter:
		return said(pipe.LIndex(ctx, ns+keys.DeadLetter(bus.BatchID(rest)), 0))
	case layout.OfReplay, layout.EachReplay:
		return said(pipe.HGet(ctx, ns+keys.Replay(bus.ReplayID(rest)), "token"))
	case layout.OfJob:
		return said(pipe.HGet(ctx, ns+keys.Job(rest), "type"))
	case layout.OfData:
		return ofData(ctx, pipe, ns, rest)
	default:
		return named(whose.Name(rest))
	}
}

// ofData asks for the owner of data: a job has its own, or shares it with others of its type.
func ofData(ctx context.Context, pipe rdb.Commands, ns, id string) owner {
	if schedule, is := strings.CutPrefix(id, "schedule:"); is {
		return named(layout.OfTypeBefore.Name(schedule))
	}
	own, sharing := pipe.HGet(ctx, ns+keys.Job(id), "type"), pipe.SRandMember(ctx, ns+keys.JobCopies(id))
	of := said(own)
	of.more = func(pipe rdb.Commands) owner {
		if sharing.Val() == "" {
			return said(own)
		}
		return said(pipe.HGet(ctx, ns+keys.Job(sharing.Val()), "type"))
	}
	return of
}

// findOwners asks for the owners of elements that each have their own, and sends the second request
// for owners that take two.
func (w *writing) findOwners(ctx context.Context) error {
	return w.from.Reads(ctx, "read", func(pipe rdb.Commands) {
		for i := range w.pending {
			p := &w.pending[i]
			if p.owner.more != nil {
				p.owner = p.owner.more(pipe)
			}
			if isEach(p.f) {
				for j := 0; j < len(p.elements); j += width(p.f.Kind) {
					p.owners = append(p.owners, w.ofElement(ctx, pipe, p.item, p.elements[j]))
				}
			}
		}
	})
}

// refuseTwins fails for a job of an id that one of another type has in the same partition of the
// target: an id names one job in a partition, not on the whole bus.
func (w *writing) refuseTwins(ctx context.Context) error {
	if w.from.Number() == 0 {
		return nil
	}
	types, there := make([]string, len(w.pending)), make([]rdb.Reply[string], len(w.pending))
	for at, to := range w.To {
		var failure error
		err := to.Reads(ctx, "look for jobs", func(pipe rdb.Commands) {
			for i := range w.pending {
				p := &w.pending[i]
				if p.f.Prefix != keys.Job("") {
					continue
				}
				home, err := w.homeOf(p.owner)
				if err != nil {
					failure = err
				} else if home == at {
					types[i], _ = p.owner.name()
					there[i] = pipe.HGet(ctx, to.Namespace()+p.key, "type")
				}
			}
		})
		if err = cmp.Or(failure, err); err != nil {
			return err
		}
	}
	for i, p := range w.pending {
		if there[i] != nil && there[i].Val() != "" && there[i].Val() != types[i] {
			return fmt.Errorf("two jobs have the id %s, of the types %s and %s, and would be in one partition: remove one of them, or wait until its type keeps it no more", p.rest, there[i].Val(), types[i])
		}
	}
	return nil
}

// isEach reports whether each element of a key has an owner.
func isEach(f layout.Family) bool { return f.Whose >= layout.EachToken && f.Whose <= layout.EachLabel }

// width returns how many texts an element has.
func width(kind rdb.Kind) int {
	if kind == rdb.Hash || kind == rdb.SortedSet {
		return 2
	}
	return 1
}

// ofElement asks for the owner of an element.
func (w *writing) ofElement(ctx context.Context, pipe rdb.Commands, it *item, element string) owner {
	switch it.f.Whose {
	case layout.EachBatch, layout.EachReplay:
		return askOwner(ctx, pipe, w.from, it.f.Whose, element)
	case layout.EachEntry:
		return w.ofEntry(ctx, pipe, element)
	case layout.EachLabel:
		machine := it.rest
		if it.f.Prefix == doctor.LabelsPrefix { // a machine's name may have a colon, a state's has none
			machine = machine[:strings.LastIndexByte(machine, ':')]
		}
		return named(machine + "/" + element)
	case layout.EachPlan:
		if strings.HasPrefix(element, "?") { // a watched topic: no process watches it any more
			return owner{isNot: true}
		}
		return named(strings.TrimPrefix(element, "/"))
	default:
		return named(element)
	}
}

// ofEntry asks for the owner of an entry of a queue.
func (w *writing) ofEntry(ctx context.Context, pipe rdb.Commands, entry string) owner {
	job, err := wire.UnpackJob(entry)
	switch {
	case err != nil || len(job.Args) == 0:
		return named("")
	case job.Name == bus.JobBatch:
		return askOwner(ctx, pipe, w.from, layout.OfBatch, job.Args[0])
	case job.Name == bus.JobJob:
		return askOwner(ctx, pipe, w.from, layout.OfJob, job.Args[0])
	case job.Name == bus.JobLabel && len(job.Args) == 2:
		return named(job.Args[0] + "/" + job.Args[1])
	case job.Name == bus.JobWalk:
		w.walks[entry] = true
		return owner{isNot: true}
	case job.Name == bus.JobMoves: // there are none: see requireNothingOnItsWay
		return owner{isNot: true}
	}
	return named("")
}

// isOfOwnQueue reports whether a key belongs to a worker that runs housekeeping, or to a relay.
func isOfOwnQueue(f layout.Family, rest string) bool {
	queue, _, _ := strings.Cut(rest, ":")
	return f.Prefix == "jobs:pending:" && slices.Contains([]bus.Queue{bus.QueueAux, bus.QueueRelay}, bus.Queue(queue))
}

// home is the partition of the target that owns a name.
func (w *writing) home(name string) int { return rdb.PartitionOf(name, len(w.To)) }

// homeOf returns the partition of an owner: the first if there is no owner.
func (w *writing) homeOf(of owner) (int, error) {
	name, err := of.name()
	if name == "" {
		return 0, err
	}
	return w.home(name), err
}

// route adds the commands that write a part of a key.
func (w *writing) route(ctx context.Context, p *part) error {
	switch {
	case w.isSame:
		w.put(ctx, int(w.from.Number()), p, p.elements)
	case isEach(p.f):
		return w.split(ctx, p)
	case p.f.Whose == layout.Everywhere:
		return w.spread(ctx, p)
	case p.f.Whose == layout.First:
		w.put(ctx, 0, p, p.elements)
	default:
		at, err := w.homeOf(p.owner)
		if err != nil {
			return err
		}
		w.put(ctx, at, p, p.elements)
		if p.f.Prefix == keys.SubscriberTopics("") {
			w.subscribe(ctx, at, p.elements)
		}
	}
	return nil
}

// split adds each element to the key in the partition of its owner.
func (w *writing) split(ctx context.Context, p *part) error {
	parts := make([][]string, len(w.To))
	size := width(p.f.Kind)
	for i, of := range p.owners {
		if of.isNot {
			continue
		}
		at, err := w.homeOf(of)
		if err != nil {
			return err
		}
		element := p.elements[i*size : (i+1)*size]
		parts[at] = append(parts[at], element...)
		if p.key == keys.Owners() {
			w.countOwned(ctx, at, element[1])
		}
	}
	for at, elements := range parts {
		if len(elements) > 0 {
			w.put(ctx, at, p, elements)
		}
	}
	return nil
}

// countOwned counts a topic of a client, by name, in its home.
func (w *writing) countOwned(ctx context.Context, at int, client string) {
	full := w.To[at].Namespace() + keys.Owned()
	w.do(at, func(pipe rdb.Commands) rdb.AnyReply { return pipe.HIncrBy(ctx, full, client, 1) })
}

// subscribe has the homes of topics relay their events to a partition with subscribers, which lists
// the topics too, as a subscription does.
func (w *writing) subscribe(ctx context.Context, at int, topics []string) {
	if !w.To[0].IsOneOfSeveral() {
		return
	}
	w.do(at, func(pipe rdb.Commands) rdb.AnyReply {
		return rdb.Add(ctx, pipe, w.To[at].Namespace()+keys.Topics(), rdb.Set, topics)
	})
	for _, topic := range topics {
		home := w.home(topic)
		if home == at {
			continue
		}
		ns, number := w.To[home].Namespace(), rdb.Number(at).String()
		w.do(home, func(pipe rdb.Commands) rdb.AnyReply {
			return pipe.HSet(ctx, ns+keys.Outboxes(bus.TopicName(topic)), number, firstGeneration)
		})
		w.do(home, func(pipe rdb.Commands) rdb.AnyReply {
			return pipe.Set(ctx, ns+keys.RelayGeneration(), firstGeneration, 0)
		})
	}
}

// firstGeneration is the generation of all subscriptions before the first relay.
const firstGeneration = 1
