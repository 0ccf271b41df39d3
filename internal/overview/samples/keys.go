package samples

import "strconv"

// Keys are the keys of this package, under a namespace. They are not of the founding layout.
type Keys struct{ Namespace string }

// Processes is a hash of the id of each process to its [overview.Process] (JSON). Written by its
// heartbeat; old entries are removed with the next slot of the series.
func (k Keys) Processes() string { return k.Namespace + "processes" }

// Slot is a slot of a ring of the history, fast or slow (deflated). Written by the workers in turn;
// it expires.
func (k Keys) Slot(ring string, number int64) string {
	return k.Namespace + "series:" + ring + ":" + strconv.FormatInt(number, 10)
}

// Day is a hash of the number of a slot to the slot, of the bus alone. It expires.
func (k Keys) Day() string { return k.Namespace + "series:day" }

// Turn is there while a worker has taken its turn to write slots.
func (k Keys) Turn() string { return k.Namespace + "series:turn" }
