// Package letters examines dead letters: their subscribers' indexes, and the sums of their events
// and bytes.
package letters
