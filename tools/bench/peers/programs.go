package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// The programs of a peer.
const (
	brokerProgram  = "broker"  // keeps events
	handlerProgram = "handler" // takes them by POST
	pusherProgram  = "pusher"  // delivers them by POST
)

// The kinds of peers.
const (
	kindJetStream = "jetstream"
	kindNSQ       = "nsq"
	kindAsynq     = "asynq"
)

// runRedis runs a Redis like the bus's in place of this program: nothing is on disk.
func runRedis(address string) error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	return syscall.Exec(path, []string{path, "--bind", host, "--port", port, "--save", "", "--appendonly", "no"}, os.Environ())
}

// runPeer runs a program of a peer, with the kind and whatever else it was launched with. It
// returns if it fails.
func runPeer(program string, args ...string) error {
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	switch call := fmt.Sprint(program, " ", args[0], " ", len(args)-1); call {
	case "broker jetstream 2":
		return runNATS(args[1], args[2])
	case "handler jetstream 3":
		return jetStreamHandler(args[1], args[2], args[3])
	case "pusher jetstream 3":
		return jetStreamPusher(args[1], args[2], number(args[3]))
	case "broker nsq 4":
		return runNSQD(args[2], args[1], args[3], int64(number(args[4])))
	case "pusher nsq 3":
		return nsqPusher(args[1], args[2], number(args[3]))
	case "broker asynq 1":
		return runRedis(args[1])
	case "handler asynq 2":
		return asynqHandler(args[1], args[2])
	case "pusher asynq 3":
		return asynqPusher(args[1], args[2], number(args[3]))
	default:
		return fmt.Errorf("no program %s", call)
	}
}
