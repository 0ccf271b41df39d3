package report

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Host is where the benchmark ran.
type Host struct {
	CPUs       int
	System, Go string
	// Load is the load average of 1, 5 and 15 minutes at first, empty where it is not known: other
	// programs that are busy make figures worse.
	Load string
}

func thisHost() Host {
	load, _ := os.ReadFile("/proc/loadavg")
	averages := strings.Fields(string(load))
	return Host{
		CPUs: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
		Load: strings.Join(averages[:min(3, len(averages))], " "),
	}
}

func (h Host) String() string {
	text := fmt.Sprintf("%d CPUs, %s, %s", h.CPUs, h.System, h.Go)
	if h.Load != "" {
		text += ", load average at first " + h.Load
	}
	return text
}
