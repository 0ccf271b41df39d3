package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"routemaster/internal/bench/stack"
	"routemaster/tools/bench-peers/adapter"
)

// The programs of a peer.
const (
	broker  = "broker"  // keeps events
	handler = "handler" // takes them by POST
	pusher  = "pusher"  // delivers them by POST
)

// The kinds of peers.
const (
	kindJetStream = "jetstream"
	kindNSQ       = "nsq"
	kindAsynq     = "asynq"
)

// launcher makes the commands of all programs: web and worker are in a directory, redis-server is
// in the path, the others are this program itself.
func launcher(directory string) stack.Launcher {
	return func(program string, args ...string) (*exec.Cmd, error) {
		switch {
		case program == stack.Web, program == stack.Worker:
			path, err := filepath.Abs(filepath.Join(directory, program))
			if err == nil {
				_, err = os.Stat(path)
			}
			if err != nil {
				return nil, fmt.Errorf("%w; make build puts it there", err)
			}
			return exec.Command(path, args...), nil
		case program == broker && args[0] == kindAsynq:
			return redisServer(args[1])
		}
		self, err := os.Executable()
		return exec.Command(self, append([]string{programCommand, program}, args...)...), err
	}
}

// redisServer is started like the bus's: nothing is on disk.
func redisServer(address string) (*exec.Cmd, error) {
	host, port, err := net.SplitHostPort(address)
	return exec.Command("redis-server", "--bind", host, "--port", port, "--save", "", "--appendonly", "no"), err
}

// runPeer runs a program of a peer, with the kind and what else the launcher was called with. It
// returns if it fails.
func runPeer(program string, args ...string) error {
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	switch call := fmt.Sprint(program, " ", args[0], " ", len(args)-1); call {
	case "broker jetstream 2":
		return adapter.NATS(args[1], args[2])
	case "handler jetstream 3":
		return adapter.JetStreamHandler(args[1], args[2], args[3])
	case "pusher jetstream 3":
		return adapter.JetStreamPusher(args[1], args[2], number(args[3]))
	case "broker nsq 4":
		return adapter.NSQ(args[2], args[1], args[3], int64(number(args[4])))
	case "pusher nsq 3":
		return adapter.NSQPusher(args[1], args[2], number(args[3]))
	case "handler asynq 2":
		return adapter.AsynqHandler(args[1], args[2])
	case "pusher asynq 3":
		return adapter.AsynqPusher(args[1], args[2], number(args[3]))
	default:
		return fmt.Errorf("no program %s", call)
	}
}
