package doctor

import (
	"strconv"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// takeWaiting takes in how many events are on their way to a partition, given its number.
func (s *Scan) takeWaiting(number string, _ []string, length int64) { s.Waiting[number] = length }

// EntryOfRelay is the entry that carries events to the partition of a number.
func EntryOfRelay(number string) string {
	return wire.PackJob(bus.Job{Name: bus.JobRelay, Args: []string{number}})
}

// RelayIn is the number in an entry of [EntryOfRelay].
func RelayIn(packed string) (number string) {
	job, err := wire.UnpackJob(packed)
	if err != nil || job.Name != bus.JobRelay || len(job.Args) != 1 {
		return ""
	}
	return job.Args[0]
}

// IsOther reports whether a text is the number of another partition of the bus.
func (s *Scan) IsOther(text string) bool {
	_, count, _ := strings.Cut(s.Redis.Name(), "/")
	partitions, _ := strconv.Atoi(count) // of a bus without partitions 0
	number, _ := strconv.Atoi(text)
	return rdb.IsNumber(text) && number < partitions && rdb.Number(number) != s.Redis.Number()
}
