package numbers

import "math"

// MaxPlaces is how many places a [Column] may have.
const MaxPlaces = 192

var nan = float32(math.NaN())

// Column has a number at each of its places, or NaN. There is one for each figure of thousands of
// names, and most of them seldom change: as long as all numbers are the same, it has but one. Its
// zero value has NaN everywhere.
type Column struct {
	// known has a bit for each place.
	known [MaxPlaces / 64]uint64
	// values are all the same while they are nil.
	values []float32
	same   float32
}

// At returns the number at a place.
func (c *Column) At(place int) float32 {
	switch {
	case c.known[place/64]>>(place%64)&1 == 0:
		return nan
	case c.values == nil:
		return c.same
	}
	return c.values[place]
}

// Set sets the number at a place, of so many.
func (c *Column) Set(place int, value float32, places int) {
	c.Forget(place)
	if value != value { // NaN
		return
	}
	if c.known == [len(c.known)]uint64{} {
		c.same, c.values = value, nil
	}
	c.known[place/64] |= 1 << (place % 64)
	if c.values == nil && value != c.same {
		c.values = make([]float32, places)
		for i := range c.values {
			c.values[i] = c.same
		}
	}
	if c.values != nil {
		c.values[place] = value
	}
}

// Forget sets NaN at a place.
func (c *Column) Forget(place int) { c.known[place/64] &^= 1 << (place % 64) }
