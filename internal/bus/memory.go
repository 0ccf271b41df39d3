package bus

// Defaults of [MemoryLimits], in bytes.
const (
	DefaultMaxMemory = 100_000_000
	DefaultMinFree   = 10_000_000
)

// QueueSize returns about how many bytes of Redis batches take, given their number, the number of
// their events, and the events' bytes, packed. A batch has an entry in each of four keys besides
// its list, an event the header of an entry. A test compares the result with Redis's own figure.
func QueueSize(batches, events, bytes int64) int64 { return 480*batches + 8*events + bytes }

// MemoryLimits say how much memory of Redis the bus may fill, in bytes.
type MemoryLimits struct {
	// Max is the maximum that may be used. 0 stands for Redis' own limit, or [DefaultMaxMemory] if
	// Redis has none.
	Max int64
	// MinFree is how much of that is kept free.
	MinFree int64
}

// Marks returns the limit of memory, in bytes, and the marks of autodrop: above the high mark
// batches are dropped, down to the low mark. RedisMax is Redis' own limit, 0 if it
// has none. Redis cannot use more than that, so a higher Max is brought down to it. A MinFree
// that leaves no room below the low mark is brought down to a quarter of the limit.
func (l MemoryLimits) Marks(redisMax int64) (limit, high, low int64) {
	limit = l.Max
	if redisMax > 0 && (limit == 0 || redisMax < limit) {
		limit = redisMax
	} else if limit == 0 {
		limit = DefaultMaxMemory
	}
	free := l.MinFree
	if 2*free >= limit {
		free = limit / 4
	}
	return limit, limit - free, limit - 2*free
}
