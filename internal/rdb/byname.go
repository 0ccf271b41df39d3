package rdb

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// NameRange says which part of a list is wanted.
type NameRange struct {
	// After is the name behind which the part begins; empty for the beginning.
	After string
	// Limit is how many are wanted; 0 for all that follow.
	Limit int
}

// NamedMember is a member of a set, with the name by which it is ordered.
type NamedMember struct{ Name, Value string }

func compareByName(a, b NamedMember) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
}

// windowSize is how many members are held at once. Redis keeps sets without order, so a list is
// made in windows, and each window takes a scan of the whole set.
const windowSize = 10_000

// EachByName calls a function with the members of a set in the order of their names, but those
// without one, at most perTrip at a time, which returns how many of them it has listed. A part does
// not end between two of the same name, so it may be longer than its limit. It is shorter only at
// the end of the list, also where some are left out.
func EachByName(
	ctx context.Context, p *Partition, key string, part NameRange, perTrip int, nameOf func(string) string,
	each func([]NamedMember) (listed int, err error),
) error {
	for left := part.Limit; ; {
		size := windowSize
		if part.Limit > 0 {
			size = min(left, windowSize)
		}
		window, err := readWindow(ctx, p, key, part.After, size, nameOf)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(window, perTrip) {
			listed, err := each(some)
			if err != nil {
				return err
			}
			left -= listed
		}
		if len(window) < size || part.Limit > 0 && left <= 0 {
			return nil
		}
		part.After = window[len(window)-1].Name
	}
}

// readWindow returns the first members of a set behind a name, and all others that have the name of
// the last of them.
func readWindow(
	ctx context.Context, p *Partition, key, after string, size int, nameOf func(string) string,
) ([]NamedMember, error) {
	var window []NamedMember
	cut := func() {
		slices.SortFunc(window, compareByName)
		window = slices.Compact(window) // SSCAN may return a member twice
		end := size
		for end < len(window) && window[end].Name == window[size-1].Name {
			end++
		}
		window = window[:min(end, len(window))]
	}
	err := p.EachPage(ctx, key, Set, 0, func(page []string) error {
		for _, m := range page {
			if name := nameOf(m); name > after {
				window = append(window, NamedMember{name, m})
			}
		}
		if len(window) >= size+max(size/2, ElementsPerTrip) {
			cut()
		}
		return nil
	})
	cut()
	return window, err
}
