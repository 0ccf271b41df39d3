package stack

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"routemaster/tools/bench/load"
)

// programArgument is the first argument of a benchmark that is to run one of its own programs.
const programArgument = "program"

// IsProgram reports whether arguments make a benchmark run one of its own programs, and returns the
// program and its arguments.
func IsProgram(args []string) (program string, its []string, ok bool) {
	if len(args) < 2 || args[0] != programArgument {
		return "", nil, false
	}
	return args[1], args[2:], true
}

// RunProgram runs [Receiver] or [Service] with their own address and their control's, the latter
// with the bus and a token too, or [Noop] with its address, until the context is done.
func RunProgram(ctx context.Context, program string, args ...string) error {
	switch {
	case program == Receiver && len(args) == 2:
		return load.ServeReceiver(ctx, args[0], args[1])
	case program == Service && len(args) == 4:
		return load.ServeService(ctx, args[0], args[1], args[2], args[3])
	case program == Noop && len(args) == 1:
		return load.ServeNoop(ctx, args[0])
	}
	return fmt.Errorf("no program %q with %d arguments", program, len(args))
}

// command makes the command of a program. [Web] and [Worker] are in a directory, the others are
// this program itself: see [IsProgram].
func (s *Stack) command(program string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if program != Web && program != Worker {
		return exec.Command(self, append([]string{programArgument, program}, args...)...), nil
	}
	path := filepath.Join(cmp.Or(s.options.Programs, filepath.Dir(self)), program)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w; make build puts it there", err)
	}
	return exec.Command(path, args...), nil
}
