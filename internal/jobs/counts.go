package jobs

import (
	"context"
	"slices"
	"time"
)

// countTimeout is the timeout for one of several partitions: callers have half a second for
// everything that they count.
const countTimeout = 300 * time.Millisecond

// CountsOf returns a function that counts the jobs of all types, the newest first. While there is
// no type it costs one command in each partition. It skips partitions that cannot be read, and
// fails with [bus.ErrUnavailable] if none can.
func CountsOf(all *Bus) func(context.Context) ([]CountedType, error) {
	return func(ctx context.Context) ([]CountedType, error) {
		if len(all.All()) == 1 {
			return count(ctx, all.All()[0])
		}
		ctx, cancel := context.WithTimeout(ctx, countTimeout)
		defer cancel()
		found := make([][]CountedType, len(all.All()))
		errs := all.Each(func(number int, st *Store) (err error) {
			found[number], err = count(ctx, st)
			return err
		})
		if !slices.Contains(errs, nil) {
			return nil, errs[0]
		}
		counted := slices.Concat(found...)
		slices.SortFunc(counted, func(a, b CountedType) int { return CompareTypes(a.Type, b.Type) })
		return counted, nil
	}
}

// count counts the jobs of a partition.
func count(ctx context.Context, st *Store) ([]CountedType, error) {
	types, err := st.Types(ctx)
	if err != nil || len(types) == 0 {
		return nil, err
	}
	counts, err := st.Counts(ctx, types...)
	if err != nil {
		return nil, err
	}
	counted := make([]CountedType, len(types))
	for i, t := range types {
		counted[i] = CountedType{Type: t, Counts: counts[i]}
	}
	return counted, nil
}

// NamesOf returns a function that reads the names of all types. It fails with [bus.ErrUnavailable]
// while a partition cannot be read.
func NamesOf(all *Bus) func(context.Context) (map[string]bool, error) {
	return func(ctx context.Context) (map[string]bool, error) {
		types, err := all.Types(ctx)
		names := make(map[string]bool, len(types))
		for _, t := range types {
			names[string(t.Name)] = true
		}
		return names, err
	}
}
