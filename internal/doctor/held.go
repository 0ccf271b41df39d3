package doctor

import (
	"strings"

	"routemaster/internal/fence"
)

// findHeld looks for subscribers that are held though the bus does not move: nobody would release
// them.
func findHeld(e *Examination) {
	plans := e.Keys.Plans()
	if e.Has(keys.Plans(), fence.Field) {
		return
	}
	for field := range e.Elements[keys.Plans()] {
		token, is := strings.CutPrefix(field, fence.Field)
		if !is {
			continue
		}
		e.Add(plans, "has "+e.Name(token)+" be held, and the bus does not move", "released",
			[]Check{Is(0, "HEXISTS", plans, fence.Field), Is(1, "HEXISTS", plans, field)},
			Command{"RELEASE_HELD", token})
	}
}
