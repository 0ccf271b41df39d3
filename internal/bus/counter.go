package bus

import (
	"slices"
	"strings"
)

// Tag qualifies a counter.
type Tag struct{ Name, Value string }

// maxTags is the maximum number of tags of a counter.
const maxTags = 3

// Counter names a counter of the bus. Two counters with the same name and tags are equal (==).
type Counter struct {
	Name string
	// Tags are ordered by name; those behind the last one are zero.
	Tags [maxTags]Tag
}

// NewCounter names a counter. Tags beyond the third are dropped.
func NewCounter(name string, tags ...Tag) Counter {
	c := Counter{Name: name}
	copy(c.Tags[:], tags)
	slices.SortFunc(c.Tags[:min(len(tags), maxTags)], func(a, b Tag) int { return strings.Compare(a.Name, b.Name) })
	return c
}

// All returns the tags that are set.
func (c *Counter) All() []Tag {
	n := slices.IndexFunc(c.Tags[:], func(t Tag) bool { return t.Name == "" })
	if n < 0 {
		n = maxTags
	}
	return c.Tags[:n]
}
