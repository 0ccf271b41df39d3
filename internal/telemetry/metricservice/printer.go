package metricservice

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
)

// maxMetricsLine is the most bytes of a line of metrics, with what every line of the log begins with.
const maxMetricsLine = 2000

// printer writes measures to the log: at INFO one line a run, of those that have changed since this process printed
// them, as many as fit; at DEBUG the others that have changed.
type printer struct {
	log *slog.Logger
	// lead is about how long the start of a line is.
	lead int
	// printed are the values that were written last; without zeros.
	printed map[string]int64
}

func newPrinter(log *slog.Logger, app, env string) *printer {
	const around = `time=2006-01-02T15:04:05.000000000+00:00 level=DEBUG msg="more metrics" app="" env="" more=1000000`
	return &printer{log: log.With("app", app, "env", env), lead: len(around) + len(strconv.Quote(app)+strconv.Quote(env)), printed: map[string]int64{}}
}

func (p *printer) TakesIncrements() bool { return false }

func (p *printer) Send(ctx context.Context, measures []Measure) error {
	message, level := "metrics", slog.LevelInfo
	for changed := p.changed(measures); len(changed) > 0; {
		fit := p.fit(changed)
		line := changed[:fit]
		if changed = changed[fit:]; len(changed) > 0 && level == slog.LevelInfo {
			line = append(line[:fit:fit], slog.Int("more", len(changed)))
		}
		p.log.LogAttrs(ctx, level, message, line...)
		message, level = "more metrics", slog.LevelDebug
	}
	return nil
}

// changed are the measures that have another value than when they were printed last. Those of the whole bus come
// first, then those of a queue and the like: the ones that tell most. A measure that is gone is not told of.
func (p *printer) changed(measures []Measure) (changed []slog.Attr) {
	now := map[string]int64{}
	var whole, others []slog.Attr
	for _, m := range measures {
		label := m.label()
		if m.Value != 0 {
			now[label] = m.Value
		}
		switch {
		case m.Value == p.printed[label]:
		case len(m.tags()) == 0 || m.Name == "jobs.count":
			whole = append(whole, slog.Int64(label, m.Value))
		default:
			others = append(others, slog.Int64(label, m.Value))
		}
	}
	p.printed = now
	return append(whole, others...)
}

// fit is how many of some measures fit on a line: one at least.
func (p *printer) fit(changed []slog.Attr) (n int) {
	length := p.lead
	for n = range changed {
		// A text quotes names that are not plain; JSON quotes all.
		length += len(changed[n].Key) + len(strconv.FormatInt(changed[n].Value.Int64(), 10)) + len(` ""=`)
		if length > maxMetricsLine {
			return max(1, n)
		}
	}
	return len(changed)
}

// label is a measure's name with its tags: jobs.count{queue:main,status:instant}.
func (m *Measure) label() string {
	tags := m.tags()
	if len(tags) == 0 {
		return m.Name
	}
	return m.Name + "{" + strings.Join(tags, ",") + "}"
}

// tags are a measure's tags, as Datadog writes them.
func (m *Measure) tags() (tags []string) {
	for _, tag := range m.All() {
		tags = append(tags, tag.Name+":"+tag.Value)
	}
	return tags
}
