package subscribers

import (
	"strings"

	"routemaster/internal/doctor/exam"
	"routemaster/internal/fence"
)

// findHeld looks for subscribers that are held though the bus does not move: nobody would release
// them.
func findHeld(e *exam.Examination) {
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
			[]exam.Check{exam.Is(0, "HEXISTS", plans, fence.Field), exam.Is(1, "HEXISTS", plans, field)},
			exam.Command{"RELEASE_HELD", token})
	}
}
