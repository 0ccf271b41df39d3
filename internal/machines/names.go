package machines

import (
	"regexp"

	"routemaster/internal/bus"
)

// How many machines a definition has at most, and how many states a machine.
const (
	MaxMachines = 1000
	MaxStates   = 1000
)

// DefaultPublisher is the client that owns a topic of moves, unless a definition names another.
const DefaultPublisher bus.ClientName = "machines"

var stateName = regexp.MustCompile(`^[0-9A-Za-z_]+$`)

// Validate returns a [bus.Invalid] unless n can name a state.
func (n StateName) Validate() error {
	if len(n) > MaxNameLen || !stateName.MatchString(string(n)) {
		return bus.Invalidf("", "a state's name is 1 to %d letters, digits and underscores", MaxNameLen)
	}
	return nil
}
