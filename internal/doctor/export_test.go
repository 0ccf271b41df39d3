package doctor

// SetMaxSearched sets the longest list of instant jobs that one step searches.
func (d *Doctor) SetMaxSearched(n int) { d.maxSearched = int64(n) }
