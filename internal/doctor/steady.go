package doctor

import (
	"context"
	"fmt"
	"strconv"
)

// maxLooks is how often something of a subscriber or a topic is checked until nothing changes
// meanwhile.
const maxLooks = 10

// UntilSteady checks something of subscribers or topics again and again, each until the check is
// done because nothing has changed meanwhile. It notes what was not checked, as it is shown.
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

// AddGauge adds what a gauge says of a subscriber, unless it must, given what shows that it must.
func (e *Examination) AddGauge(key, token, said string, must int64, checks ...Check) {
	set := Command{"HSET", key, token, must}
	if must == 0 {
		set = Command{"HDEL", key, token}
	}
	if said != Figure(must) {
		problem := fmt.Sprintf("has %q for %s, must be %d", said, e.Name(token), must)
		e.Add(key, problem, "set right", append(checks, Is(said, "HGET", key, token)), set)
	}
}

// Figure is a number as a gauge says it: nothing for 0.
func Figure(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
