package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has taken so far.
type usage struct {
	cpu time.Duration
	// peak is the most memory it held, in bytes.
	peak int64
}

// clockTick is the unit of CPU time in /proc, the same on every Linux.
const clockTick = 10 * time.Millisecond

// usageOf reads what a process has taken. It is known on Linux only.
func usageOf(pid int) (u usage, known bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, false
	}
	// The name, in brackets, may have spaces. After it come the third field and those that follow: proc(5).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return usage{}, false
	}
	for _, field := range fields[11:13] { // utime and stime
		ticks, _ := strconv.ParseInt(field, 10, 64)
		u.cpu += time.Duration(ticks) * clockTick
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, false
	}
	if _, after, found := strings.Cut(string(status), "\nVmHWM:"); found {
		kilobytes, _, _ := strings.Cut(strings.TrimSpace(after), " ")
		u.peak, _ = strconv.ParseInt(kilobytes, 10, 64)
		u.peak <<= 10
	}
	return u, true
}
