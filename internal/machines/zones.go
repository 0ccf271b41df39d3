package machines

import (
	"fmt"
	"time"
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
		return nil, fmt.Errorf("%s is not the name of a time zone", z)
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is not the name of a time zone", z, name)
	}
	return location, nil
}

// ZoneFor is that of system.time when a trigger has the gate evaluated: the gate's own, else the
// trigger's, else that of the first trigger by time.
func (g *Gate) ZoneFor(trigger string) Zone {
	zone := g.Zone
	for _, t := range g.Triggers {
		if zone.isSet() || t.TimeOfDay == nil {
			continue
		}
		if t.String() == trigger {
			return t.Zone
		}
	}
	for _, t := range g.Triggers {
		if !zone.isSet() && t.TimeOfDay != nil {
			zone = t.Zone
		}
	}
	return zone
}

func (z Zone) isSet() bool { return z.Location != nil || len(z.Metadata) > 0 }
