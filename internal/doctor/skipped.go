package doctor

import (
	"context"
	"slices"
	"strings"

	"routemaster/internal/rdb"
)

// checkTypes reports the keys that exist with a type other than the layout's.
func checkTypes(ctx context.Context, e *Examination, names []string) (sound bool, err error) {
	sound = true
	for some := range slices.Chunk(names, rdb.KeysPerTrip) {
		types := make([]rdb.Reply[string], len(some))
		err := e.Redis.Pipelined(ctx, "types", func(pipe rdb.Commands) {
			for i, key := range some {
				types[i] = pipe.Type(ctx, e.Full(key))
			}
		})
		if err != nil {
			return false, err
		}
		for i, key := range some {
			f, _ := FamilyOf(key)
			switch is := types[i].Val(); {
			case is == "none" || is == string(f.Kind):
				continue
			case f.Kind == "":
				e.Report(key, "", "is not a key of the layout")
			default:
				e.Report(key, "", "is a %s, must be a %s", is, f.Kind)
			}
			sound = false
		}
	}
	return sound, nil
}

// reportSkipped reports the skipped items other than keys.
func reportSkipped(e *Examination) {
	for _, key := range Sorted(e.Unknown) {
		fields := slices.Compact(slices.Sorted(slices.Values(e.Unknown[key]))) // one may have come twice
		e.Report(key, "", "has fields that the layout does not know: %s", strings.Join(fields, ", "))
	}
	for _, member := range Sorted(e.NotUIDs) {
		e.Report(keys.BatchesIndex(), "", "lists %q, which is no UID", member)
	}
	originals := 0
	for q, queue := range e.Queues {
		for packed, j := range queue.Entries {
			if j.Original {
				originals++
			}
			if _, ours := BatchOf(q, packed); !ours {
				e.Report(ShowJob(packed), "", "in queue %s is not one that this program writes", q)
			}
		}
	}
	if originals > 0 {
		e.Report(keys.Original("{uid}"), "", "%d batches of the Ruby original, which `rtm migrate --apply` moves; "+
			"they, and what belongs to them, are skipped", originals)
	}
}
