package console

import (
	"net/http"
	"slices"
	"sync"

	"routemaster/client/subscriber"
	"routemaster/internal/console/view"
	"routemaster/internal/overview"
)

// subscriberPage is the data of a subscriber's page: every visitor sees the figures, the subscriber
// itself and root see the rest.
type subscriberPage struct {
	Name string
	// Row is nil if the figures have no such subscriber, or not yet.
	Row      *view.SubscriberRow
	Problems []overview.Problem
	Charts   []view.Chart
	// Topics are the topics that it is subscribed to, with their rates.
	Topics []overview.Topic
	// Own reports whether the visitor may see all of it. Sections has it for each token of the name.
	Own      bool
	Sections Panel[[]section]
}

// section is the data of one token's subscriber. Each part fails alone.
type section struct {
	holder
	Attempts Panel[[]subscriber.Attempt]
	Outcome  string
	Batches  Panel[[]subscriber.Batch]
	Letters  Panel[[]subscriber.Letter]
	Replays  Panel[[]replay]
	Secrets  Panel[[]subscriber.Secret]
	// Why says why nothing is delivered now; empty if nothing is in the way.
	Why string
	// Paused is whether it is paused now.
	Paused bool
	// UUID is the secret of the deliveries, if it was asked for.
	UUID string
}

// replay is a replay with how many events it is of.
type replay struct {
	subscriber.Replay
	Events int64
}

func sized(all []subscriber.Replay) []replay {
	some := make([]replay, len(all))
	for i, r := range all {
		some[i] = replay{r, r.To - r.From + 1}
	}
	return some
}

// How many rows the page of a subscriber has of each list.
const (
	shownAttempts = 20
	shownBatches  = 10
	shownLetters  = 5
)

func loadSubscriber(v *Visit) (any, error) {
	name, f := v.Path("subscriber"), v.Figures
	p := subscriberPage{Name: name, Own: v.Root || v.Client == name}
	if i := slices.IndexFunc(f.Subscribers, func(s overview.Subscriber) bool { return s.Name == name }); i >= 0 {
		p.Row = &view.SubscriberRows(v.Figures, v.Tracks, f.Subscribers[i:i+1])[0]
	}
	if p.Own {
		p.Sections = Part(sections(v, name))
	}
	if p.Row == nil && len(p.Sections.Value) == 0 && p.Sections.Problem == "" {
		return nil, Refuse(http.StatusNotFound, "", "There is no subscriber "+name+".")
	}
	for _, one := range f.Problems {
		if one.Subscriber == name {
			p.Problems = append(p.Problems, one)
		}
	}
	for _, t := range f.Topics {
		if p.Row != nil && slices.Contains(p.Row.Topics, t.Name) {
			p.Topics = append(p.Topics, t)
		}
	}
	of := overview.Subject{Subscriber: name}
	p.Charts = []view.Chart{
		view.NewChart("backlog", "Queued, oldest", of, v.Tracks, view.Queued, view.Oldest),
		view.NewChart("deliveries", "Deliveries that succeeded, failed", of, v.Tracks, view.Succeeded, view.Failed),
	}
	p.Charts[1].Means = view.MeansOf(of, v.Tracks)
	return p, nil
}

// sections reads the data of all subscribers of a name.
func sections(v *Visit, name string) ([]section, error) {
	all, err := holders(v, name)
	if err != nil {
		return nil, err
	}
	some := make([]section, len(all))
	var reading sync.WaitGroup
	for i, h := range all {
		readSection(v, h, &some[i], &reading)
	}
	reading.Wait()
	return some, nil
}

// readSection reads the parts of a section concurrently.
func readSection(v *Visit, h holder, s *section, reading *sync.WaitGroup) {
	ctx, now := v.Context(), v.Now()
	outcome := v.Query("outcome")
	*s = section{holder: h, Outcome: outcome, Why: h.Info.Status.Explain(now), Paused: h.Info.Status.IsPaused(now)}
	if v.Query("reveal") == "uuid" && !v.LookOnly {
		s.UUID = h.Info.UUID
	}
	reading.Go(func() {
		s.Attempts = Part(h.LastAttempts(ctx, subscriber.AttemptFilter{Outcome: outcome}, shownAttempts))
	})
	reading.Go(func() { s.Batches = Part(h.OldestBatches(ctx, shownBatches)) })
	if h.Info.Status.DeadLetters.Letters > 0 {
		reading.Go(func() {
			letters, err := h.LetterPage(ctx, subscriber.LetterFilter{}, "", shownLetters)
			s.Letters = Part(letters.Letters, err)
		})
	}
	if h.Info.Status.Replays > 0 {
		reading.Go(func() {
			replays, err := h.Replays(ctx)
			s.Replays = Part(sized(replays), err)
		})
	}
	if h.Info.Status.Signed && !v.IsRefresh() { // the settings have them
		reading.Go(func() { s.Secrets = Part(h.Secrets(ctx)) })
	}
}

// settingsPage is the data of the page of a subscriber's settings.
type settingsPage struct {
	holder
	view.Settings
	Command string
}

// settingsPath is the page of a subscriber's settings.
const settingsPath = subscriberPath + "/settings"

func loadSettings(v *Visit) (any, error) {
	h, err := holderOf(v)
	if err != nil {
		return nil, err
	}
	s := view.NewSettings(h.Info)
	v.FillSettings(&s)
	command := view.Command(http.MethodPatch, h.path(v.Root), map[string]any{"max": h.Info.Max})
	return settingsPage{h, s, command}, nil
}

func submitSettings(v *Visit) (answer Answer, err error) {
	h, err := holderOf(v)
	if err != nil {
		return answer, err
	}
	s := view.NewSettings(h.Info)
	return v.SaveSettings(&s, h.Name, subscriberPath, h.Patch)
}
