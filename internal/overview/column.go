package overview

import "math"

// MaxPlaces is how many places a [Column] may have.
const MaxPlaces = 192

// Column has a number at each of its places, or NaN. There is one for each figure of thousands of
// names. Most of them seldom change: as long as all numbers are the same, it has but one. Most
// others are small counts, which take half the memory. Its zero value has NaN everywhere.
type Column struct {
	// known has a bit for each place.
	known [MaxPlaces / 64]uint64
	// cells are one for each place, or two if it is wide; nil while all numbers are the same.
	cells []uint16
	same  float32
	wide  bool
}

// At returns the number at a place.
func (c *Column) At(place int) float32 {
	switch {
	case c.known[place/64]>>(place%64)&1 == 0:
		return nan
	case c.cells == nil:
		return c.same
	case c.wide:
		return math.Float32frombits(uint32(c.cells[2*place]) | uint32(c.cells[2*place+1])<<16)
	}
	return float32(c.cells[place])
}

// Set sets the number at a place, of so many.
func (c *Column) Set(place int, value float32, places int) {
	c.Forget(place)
	if value != value { // NaN
		return
	}
	if c.known == [len(c.known)]uint64{} {
		*c = Column{same: value}
	}
	if c.cells == nil && value != c.same {
		c.resize(places, !isSmall(value) || !isSmall(c.same))
	}
	if c.cells != nil && !c.wide && !isSmall(value) {
		c.resize(places, true)
	}
	c.known[place/64] |= 1 << (place % 64)
	c.put(place, value)
}

// isSmall reports whether a number fits into a cell.
func isSmall(value float32) bool {
	return value >= 0 && value <= math.MaxUint16 && value == float32(uint16(value))
}

// resize makes cells for all places, and copies the numbers.
func (c *Column) resize(places int, wide bool) {
	was, size := *c, places
	if wide {
		size *= 2
	}
	c.cells, c.wide = make([]uint16, size), wide
	for place := range places {
		if value := was.At(place); value == value { // not NaN
			c.put(place, value)
		}
	}
}

func (c *Column) put(place int, value float32) {
	switch bits := math.Float32bits(value); {
	case c.cells == nil:
	case c.wide:
		c.cells[2*place], c.cells[2*place+1] = uint16(bits), uint16(bits>>16)
	default:
		c.cells[place] = uint16(value)
	}
}

// Forget sets NaN at a place.
func (c *Column) Forget(place int) { c.known[place/64] &^= 1 << (place % 64) }
