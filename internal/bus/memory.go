package bus

// Memory limits of Redis where none are set, in bytes.
const (
	DefaultMaxMemory = 100_000_000
	DefaultMinFree   = 10_000_000
)

// MemoryLimits say how much memory of Redis the bus may fill, in bytes.
type MemoryLimits struct {
	// Max is the most that may be used; 0 stands for Redis' own limit, or [DefaultMaxMemory] if it has none.
	Max int64
	// MinFree is how much of that is to be kept free.
	MinFree int64
}

// Marks are the high mark, above which the oldest batches are dropped, and the low mark, to which they
// are dropped, given Redis' own limit (0 if it has none). Redis cannot use more than that, so a
// higher Max is brought down to it. A MinFree that leaves no room below the low mark is brought
// down to a quarter of the limit.
func (l MemoryLimits) Marks(redisMax int64) (high, low int64) {
	most := l.Max
	if redisMax > 0 && (most == 0 || redisMax < most) {
		most = redisMax
	} else if most == 0 {
		most = DefaultMaxMemory
	}
	free := l.MinFree
	if 2*free >= most {
		free = most / 4
	}
	return most - free, most - 2*free
}
