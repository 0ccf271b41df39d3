package machines

import (
	"fmt"
	"time"

	"routemaster/internal/bus"
)

// In returns the location of a zone for a label with some metadata; nil for one without it. It
// fails if the metadata names no zone of the IANA database.
func (z Zone) In(metadata Object) (*time.Location, error) {
	switch {
	case len(z.Metadata) == 0 && z.Location != nil:
		return z.Location, nil
	case len(z.Metadata) == 0:
		return time.Local, nil
	}
	value := metadata.At(z.Metadata)
	if value == nil {
		return nil, nil
	}
	name, ok := value.(string)
	if !ok || name == "" || name == "Local" {
		return nil, notAZone(z)
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, notAZone(z)
	}
	return location, nil
}

// notAZone names the path in the metadata. It leaves out the value, since the metadata may be large
// and must not be in logs.
func notAZone(z Zone) error {
	return fmt.Errorf("%s is not the name of a time zone of the IANA database", bus.Reason(z.String()))
}

// ZoneFor returns the zone of system.time when a trigger starts an evaluation of the gate: the
// trigger's, else the gate's own, else the zone of the first trigger by time.
func (g *Gate) ZoneFor(trigger string) Zone {
	if t := g.timeOfDay(trigger); t != nil && (t.Zone.isSet() || !g.Zone.isSet()) {
		return t.Zone
	}
	for _, t := range g.Triggers {
		if t.TimeOfDay != nil && !g.Zone.isSet() {
			return t.Zone
		}
	}
	return g.Zone
}

// timeOfDay returns the gate's trigger of a name, if it is one by time of day; else nil.
func (g *Gate) timeOfDay(name string) *Trigger {
	for i, t := range g.Triggers {
		if t.TimeOfDay != nil && t.String() == name {
			return &g.Triggers[i]
		}
	}
	return nil
}

// MaxAhead is how far the clock of another process may be ahead: actions that it dates up to then
// count as done now.
const MaxAhead = time.Minute

// maxLate is how much later than a trigger by time of day was due labels may be evaluated as of
// then.
const maxLate = 5 * time.Minute

// DueFor is when the trigger that has the gate evaluated now was due, if it is one by time of day
// and was due just now; else zero. The metadata are the label's.
func (g *Gate) DueFor(trigger string, metadata Object, now time.Time) time.Time {
	t := g.timeOfDay(trigger)
	if t == nil {
		return time.Time{}
	}
	zone, err := t.Zone.In(metadata)
	if err != nil {
		return time.Time{}
	}
	due, ok := t.Latest(now.Add(-maxLate), now.Add(MaxAhead), zone)
	if !ok {
		return time.Time{}
	}
	return due
}

func (z Zone) isSet() bool { return z.Location != nil || len(z.Metadata) > 0 }
