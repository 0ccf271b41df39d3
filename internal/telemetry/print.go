package telemetry

import (
	"context"
	"log/slog"
	"slices"
	"strings"
)

// measuresPerLine bounds the lines of the log; a small bus needs one a run.
const measuresPerLine = 500

// printer writes measures to the log: one line a run, where those that are 0 are left out, and more only on a bus with
// many subscribers.
type printer struct{ log *slog.Logger }

func (p *printer) takesIncrements() bool { return false }

func (p *printer) send(_ context.Context, measures []measure) error {
	measures = slices.DeleteFunc(measures, func(m measure) bool { return m.value == 0 })
	for some := range slices.Chunk(measures, measuresPerLine) {
		attrs := make([]any, len(some))
		for i, m := range some {
			attrs[i] = slog.Int64(m.label(), m.value)
		}
		p.log.Info("metrics", attrs...)
	}
	return nil
}

// label is a measure's name with its tags: jobs.count{queue:main,status:instant}.
func (m *measure) label() string {
	tags := m.tags()
	if len(tags) == 0 {
		return m.Name
	}
	return m.Name + "{" + strings.Join(tags, ",") + "}"
}

// tags are a measure's tags, as Datadog writes them.
func (m *measure) tags() (tags []string) {
	for _, tag := range m.All() {
		tags = append(tags, tag.Name+":"+tag.Value)
	}
	return tags
}
