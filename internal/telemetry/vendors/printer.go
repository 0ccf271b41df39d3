package vendors

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
)

// maxMetricsLine bounds a log line of metrics, in bytes, including the start of every log line.
const maxMetricsLine = 2000

// printer writes measures to the log. Each run writes the measures that have changed since the run
// before: at INFO one line with as many as fit, and at DEBUG the others.
type printer struct {
	log *slog.Logger
	// prefix is about how long the start of a line is, in bytes.
	prefix int
	// printed has the values of the last run that were not 0, by label.
	printed map[string]int64
}

func newPrinter(log *slog.Logger, app, env string) *printer {
	const longest = `time=2006-01-02T15:04:05.000000000+00:00 level=DEBUG msg="more metrics" app= env= more=1000000`
	return &printer{
		log:     log.With("app", app, "env", env),
		prefix:  len(longest) + len(strconv.Quote(app)) + len(strconv.Quote(env)),
		printed: map[string]int64{},
	}
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

// changed returns the measures whose values differ from the last run's, the whole bus's first. It
// leaves out measures that no longer exist.
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

// fit returns how many measures fit on a line, at least 1.
func (p *printer) fit(changed []slog.Attr) (n int) {
	length := p.prefix
	for n = range changed {
		// JSON quotes all keys; text quotes some.
		length += len(changed[n].Key) + len(strconv.FormatInt(changed[n].Value.Int64(), 10)) + len(` ""=`)
		if length > maxMetricsLine {
			return max(1, n)
		}
	}
	return len(changed)
}

// label returns a measure's name with its tags, as in jobs.count{queue:main,status:instant}.
func (m *Measure) label() string {
	tags := m.tags()
	if len(tags) == 0 {
		return m.Name
	}
	return m.Name + "{" + strings.Join(tags, ",") + "}"
}

// tags returns a measure's tags in Datadog's notation, name:value.
func (m *Measure) tags() (tags []string) {
	for _, tag := range m.All() {
		tags = append(tags, tag.Name+":"+tag.Value)
	}
	return tags
}
