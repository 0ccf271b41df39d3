package overview

// Growth is by how much the totals of the subscribers and topics of a bus have grown since a time.
type Growth struct {
	// Began is that time, in ms since the Unix epoch. Two that began at different times have nothing
	// to do with each other.
	Began int64
	Sent  int64
	Counts
	Events int64
}

// Follow sets by how much the bus has grown, given the slot before, nil if there is none: by what
// those have that are in both. The sum of all totals would also change when one leaves, or comes
// back with all it ever had. If that is not known, because slots had no room for all and others are
// there now, growth begins anew, which is a gap. It must be called before [Slot.Shorten].
func (s *Slot) Follow(before *Slot) {
	s.Grown = Growth{Began: s.At.UnixMilli()}
	if before == nil {
		return
	}
	grown, known := s.grownSince(*before)
	if !known {
		return
	}
	was := before.Grown
	s.Grown = Growth{
		Began: was.Began, Sent: was.Sent + grown.Sent, Events: was.Events + grown.Events,
		Counts: Counts{was.Succeeded + grown.Succeeded, was.Failed + grown.Failed, was.Dropped + grown.Dropped},
	}
}

func (s *Slot) grownSince(before Slot) (g Growth, known bool) {
	if before.coverage().Whole() {
		was := make(map[string]Totals, len(before.Subscribers))
		for _, sub := range before.Subscribers {
			was[sub.Name] = sub.Totals
		}
		for _, sub := range s.Subscribers {
			if totals, ok := was[sub.Name]; ok {
				g.add(totals, sub.Totals)
			}
		}
		events := make(map[string]int64, len(before.Topics))
		for _, topic := range before.Topics {
			events[topic.Name] = topic.Events
		}
		for _, topic := range s.Topics {
			if n, ok := events[topic.Name]; ok {
				g.Events += grew(n, topic.Events)
			}
		}
		return g, true
	}
	g.add(before.Bus, s.Bus)
	g.Events = grew(before.Events, s.Events)
	return g, before.Names == s.Names
}

func (g *Growth) add(was, now Totals) {
	g.Sent += grew(was.Sent, now.Sent)
	g.Succeeded += grew(was.Succeeded, now.Succeeded)
	g.Failed += grew(was.Failed, now.Failed)
	g.Dropped += grew(was.Dropped, now.Dropped)
}

// grew is the growth of a total. One that fell has begun anew, and its growth is not known.
func grew(was, now int64) int64 { return max(now-was, 0) }
