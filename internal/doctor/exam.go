package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// Finding is something in Redis that contradicts the data layout's invariants. It shows clients by
// name, never a token.
type Finding struct {
	// Partition is the number of the one that it is in, two digits; empty on a bus without
	// partitions.
	Partition string
	Key       string
	Problem   string
	// Remedy describes the repair that was done or, without Fix, would be done; empty if the
	// finding is skipped.
	Remedy string
	Fixed  bool
}

// examOptions configure an [Examination].
type examOptions struct {
	// Fix enables repairs.
	Fix bool
	// Pause is how long to wait for work in progress to finish.
	Pause time.Duration
	// Observe is called with each finding, once.
	Observe func(Finding)
}

// Examination is one run.
type Examination struct {
	*Scan
	examOptions
	// Unchecked names the keys that changed too fast to be checked.
	Unchecked []string

	reported   map[Finding]bool
	candidates []candidate
	paused     bool // the pause is over
}

// newExamination begins an examination of a partition. It has read nothing yet.
func newExamination(partition *rdb.Partition, options examOptions) *Examination {
	return &Examination{Scan: newScan(partition), examOptions: options, reported: map[Finding]bool{}}
}

// Settle waits once for the pause, so that work in progress can finish.
func (e *Examination) Settle(ctx context.Context) error {
	if e.paused {
		return nil
	}
	e.paused = true
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(e.Pause):
		return nil
	}
}

// Report reports a finding, once. Without a remedy it is left as it is.
func (e *Examination) Report(key, remedy, format string, args ...any) {
	f := Finding{e.Redis.NumberIfSeveral(), e.Show(key), fmt.Sprintf(format, args...), remedy, e.Fix && remedy != ""}
	if !e.reported[f] {
		e.reported[f] = true
		e.Observe(f)
	}
}

// Show is a key without its namespace, and with a client's name for its token.
func (e *Examination) Show(key string) string {
	key = e.Short(key)
	if f, of := FamilyOf(key); f.Whose == layout.OfToken {
		token := layout.TokenOf(of)
		return f.Prefix + e.Name(token) + strings.TrimPrefix(of, token)
	}
	for i := range len(key) { // a key that the layout does not know may have a token all the same
		if key[i] == ':' && e.isToken(key[i+1:]) {
			return key[:i+1] + e.Name(key[i+1:])
		}
	}
	return key
}

func (e *Examination) isToken(text string) bool {
	return e.Has(keys.Tokens(), text) || e.Has(keys.Subscribers(), text)
}

// Name returns the client's name and hides its token. Text that cannot be a token stays as it is.
func (e *Examination) Name(token string) string {
	if bus.Token(token).Validate() != nil && !e.isToken(token) {
		return token
	}
	return string(bus.PublicName(bus.Token(token), bus.ClientName(e.Elements[keys.Tokens()][token])))
}

// ShowJob is a job as findings show it.
func ShowJob(packed string) string { return "job " + wire.ShowJob(packed) }

// maxLooks bounds how often one subscriber or topic is checked until it stays unchanged.
const maxLooks = 10

// UntilSteady repeats the check of each subscriber or topic until check returns done, because
// nothing changed during it. It records the names of the rest as unchecked.
func (e *Examination) UntilSteady(
	ctx context.Context, show func(of string) string, all []string, check func(of string) (done bool, err error),
) error {
	for look := 0; len(all) > 0 && look < maxLooks; look++ {
		e.paused = false
		if err := e.Settle(ctx); err != nil {
			return err
		}
		var left []string
		for _, of := range all {
			done, err := check(of)
			if err != nil {
				return err
			}
			if !done {
				left = append(left, of)
			}
		}
		all = left
	}
	for _, of := range all {
		e.Unchecked = append(e.Unchecked, show(of))
	}
	return nil
}
