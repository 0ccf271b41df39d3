package overview

import (
	"fmt"
	"slices"
	"time"
)

// keep fills the parts that could not be read from their last values.
func (s *Sampler) keep(f *Figures, now Sample) {
	if s.readAt == nil {
		s.readAt = map[string]time.Time{}
	}
	for _, u := range now.Unread {
		u.ReadAt = Time{s.readAt[u.Part]}
		f.Unread = append(f.Unread, u)
		f.Warnings = append(f.Warnings, fmt.Sprintf("The %s could not be read: %s.", u.Part, u.Why))
	}
	for part, keep := range kept {
		if now.Lacks(part) {
			keep(f, s.last)
		} else {
			s.readAt[part] = now.At
		}
	}
}

// kept copies the figures of a part. Figures of counters become unknown instead: they cover the
// last minute.
var kept = map[string]func(f *Figures, last Figures){
	PartMemory: func(f *Figures, last Figures) { f.Memory = last.Memory },
	PartQueues: func(f *Figures, last Figures) { f.Queues, f.Due = last.Queues, last.Due },
	PartSubscribers: func(f *Figures, last Figures) {
		f.Subscribers = slices.Clone(last.Subscribers)
		f.Queued, f.OldestAge, f.Delivered, f.Dropped = last.Queued, last.OldestAge, last.Delivered, last.Dropped
		f.keepFollowers(last)
		f.Clients = last.Clients // their queued bytes are unknown
	},
	PartOldest: func(f *Figures, last Figures) {
		f.OldestAge = last.OldestAge
		f.keepOf(last, func(sub *Subscriber, was Subscriber) {
			if sub.Queued > 0 {
				sub.OldestAge = was.OldestAge
			}
		})
	},
	PartTopics: func(f *Figures, last Figures) { f.Topics, f.Published = slices.Clone(last.Topics), last.Published },
	PartSubscriptions: func(f *Figures, last Figures) {
		f.keepOf(last, func(sub *Subscriber, was Subscriber) { sub.Topics, sub.Failure = was.Topics, was.Failure })
		f.keepFollowers(last)
	},
	PartCounters: func(*Figures, Figures) {},
	PartJobTypes: func(f *Figures, last Figures) { f.JobTypes = last.JobTypes },
	PartMachines: func(f *Figures, last Figures) { f.Machines = last.Machines },
	PartProcesses: func(f *Figures, last Figures) {
		f.Processes, f.Threads, f.Busy = last.Processes, last.Threads, last.Busy
	},
	PartAccounts: func(f *Figures, last Figures) { f.Clients = last.Clients },
	PartHistory:  func(*Figures, Figures) {},
}

// keepOf copies some figures of each subscriber.
func (f *Figures) keepOf(last Figures, keep func(sub *Subscriber, was Subscriber)) {
	was := make(map[string]Subscriber, len(last.Subscribers))
	for _, sub := range last.Subscribers {
		was[sub.Name] = sub
	}
	for i := range f.Subscribers {
		if sub, ok := was[f.Subscribers[i].Name]; ok {
			keep(&f.Subscribers[i], sub)
		}
	}
}

// keepFollowers copies how many subscribers each topic has.
func (f *Figures) keepFollowers(last Figures) {
	was := make(map[string]int, len(last.Topics))
	for _, t := range last.Topics {
		was[t.Name] = t.Subscribers
	}
	for i := range f.Topics {
		f.Topics[i].Subscribers = was[f.Topics[i].Name]
	}
}
