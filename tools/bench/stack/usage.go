package stack

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is the CPU time and memory that a process has used so far.
type Usage struct {
	CPU time.Duration
	// PeakMemory is its peak memory in bytes.
	PeakMemory int64
}

// clockTick is the unit of CPU time in /proc: on Linux always 1/100 s.
const clockTick = 10 * time.Millisecond

// usageOf reads the usage of a process. It is known on Linux only.
func usageOf(pid int) (u Usage, known bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, false
	}
	// The name, in brackets, may have spaces. After it come the third field and so on: proc(5).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return Usage{}, false
	}
	for _, field := range fields[11:13] { // utime and stime
		ticks, _ := strconv.ParseInt(field, 10, 64)
		u.CPU += time.Duration(ticks) * clockTick
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, false
	}
	if _, after, found := strings.Cut(string(status), "\nVmHWM:"); found {
		kilobytes, _, _ := strings.Cut(strings.TrimSpace(after), " ")
		u.PeakMemory, _ = strconv.ParseInt(kilobytes, 10, 64)
		u.PeakMemory <<= 10
	}
	return u, true
}

// HostUsage returns the CPU time of this host until now, of all processes: busy, and in all. It is
// known on Linux only.
func HostUsage() (busy, total time.Duration) {
	stat, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 {
		return 0, 0
	}
	for i, field := range fields[1:9] { // user, nice, system, idle, iowait, irq, softirq, steal
		ticks, _ := strconv.ParseInt(field, 10, 64)
		spent := time.Duration(ticks) * clockTick
		total += spent
		if i != 3 && i != 4 {
			busy += spent
		}
	}
	return busy, total
}
