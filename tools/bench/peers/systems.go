package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"routemaster/client"
	"routemaster/tools/bench/load"
	"routemaster/tools/bench/stack"
)

// system is something that takes events by POST and delivers them by POST.
type system struct {
	// name is its name in tables, and settings says where its events are meanwhile.
	name, settings string
	// open starts the part that takes events. A subscriber of ours gets up to batch of them in a
	// delivery; others always get one.
	open func(ctx context.Context, batch int) (*site, error)
}

// The systems that goals name.
const (
	routemaster  = "routemaster"
	jetStream    = "JetStream, memory"
	jetStreamOn  = "JetStream, file"
	nsqMemory    = "nsqd, memory"
	nsqDisk      = "nsqd, disk"
	asynqProgram = "asynq"
)

var systems = []system{
	{routemaster, "Redis, nothing on disk", openRoutemaster},
	{jetStream, "memory storage", openJetStream("memory")},
	{jetStreamOn, "file storage, synced every 2 min", openJetStream("file")},
	{nsqMemory, "--mem-queue-size 1000000", openNSQ(1_000_000)},
	{nsqDisk, "--mem-queue-size 0, synced every 2,500 messages or 2 s", openNSQ(0)},
	{asynqProgram, "Redis, nothing on disk", openAsynq},
}

// site is a system that runs, with a receiver.
type site struct {
	*stack.Stack
	directory string
	// target is where publishers publish.
	target load.Target
	// deliver starts the part that delivers, inFlight events at a time.
	deliver func(ctx context.Context, inFlight int) error
}

// prefix begins the paths of callbacks.
const prefix = "/run/"

func callback(s *stack.Stack) string { return "https://" + s.Receiver + prefix + "0" }

// close stops the programs, senders before receivers.
func (s *site) close() (err error) {
	for _, program := range []string{pusherProgram, handlerProgram, brokerProgram} {
		err = errors.Join(err, s.Stop(program))
	}
	return errors.Join(err, s.Close(), os.RemoveAll(s.directory))
}

func openRoutemaster(ctx context.Context, batch int) (*site, error) {
	s, err := stack.New(ctx, stack.Options{})
	if err != nil {
		return nil, err
	}
	opened := &site{Stack: s, target: load.Target{URL: "http://" + s.Web, Token: "publisher--token", Topic: topic}}
	opened.deliver = func(ctx context.Context, inFlight int) error {
		return s.StartWorker(ctx, "ROUTEMASTER_SUBSCRIBER_DELIVERIES="+strconv.Itoa(inFlight))
	}
	if err := subscribe(ctx, opened, batch); err != nil {
		return nil, errors.Join(err, opened.close())
	}
	return opened, nil
}

// subscribe lets a publisher and a subscriber in, and subscribes the latter.
func subscribe(ctx context.Context, s *site, batch int) error {
	root, err := client.New(s.target.URL, stack.RootKey)
	if err != nil {
		return err
	}
	const token = "subscriber--token"
	for name, token := range map[string]string{"publisher": s.target.Token, "subscriber": token} {
		if _, err := root.AddToken(ctx, name, token); err != nil {
			return err
		}
	}
	subscriber, err := client.New(s.target.URL, token)
	if err != nil {
		return err
	}
	timeout := time.Duration(0)
	if batch > 1 {
		timeout = 500 * time.Millisecond
	}
	return subscriber.Subscribe(ctx, client.Subscription{
		Topics: []string{s.target.Topic}, Callback: callback(s.Stack), UUID: "bench", Max: batch, Timeout: &timeout,
	})
}

// newPeer starts a receiver, and makes a directory and two free addresses for a peer. Its events
// are published at the first.
func newPeer(ctx context.Context) (s *site, free []string, err error) {
	directory, err := os.MkdirTemp("", "bench-peers-")
	if err != nil {
		return nil, nil, err
	}
	running, err := stack.NewReceiver(ctx, stack.Options{}, "")
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(directory))
	}
	s = &site{Stack: running, directory: directory}
	if free, err = s.FreeAddresses(2); err != nil {
		return nil, nil, errors.Join(err, s.close())
	}
	s.target.URL = "http://" + free[0]
	return s, free, nil
}

// started is a peer, closed if it has not started.
func started(s *site, err error) (*site, error) {
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// pushWith has a peer's events delivered by a program.
func (s *site) pushWith(kind, source string) {
	s.deliver = func(ctx context.Context, inFlight int) error {
		return s.Launch(ctx, pusherProgram, nil, kind, source, callback(s.Stack), strconv.Itoa(inFlight))
	}
}

func openJetStream(storage string) func(context.Context, int) (*site, error) {
	return func(ctx context.Context, _ int) (*site, error) {
		s, free, err := newPeer(ctx)
		if err != nil {
			return nil, err
		}
		s.pushWith(kindJetStream, free[1])
		err = s.Launch(ctx, brokerProgram, free[1:], kindJetStream, free[1], s.directory)
		if err == nil {
			err = s.Launch(ctx, handlerProgram, free[:1], kindJetStream, free[0], free[1], storage)
		}
		return started(s, err)
	}
}

func openNSQ(memory int64) func(context.Context, int) (*site, error) {
	return func(ctx context.Context, _ int) (*site, error) {
		s, free, err := newPeer(ctx)
		if err != nil {
			return nil, err
		}
		s.target.Path = nsqPath
		s.pushWith(kindNSQ, free[1])
		err = s.Launch(ctx, brokerProgram, free, kindNSQ, free[0], free[1], s.directory, strconv.FormatInt(memory, 10))
		if err == nil {
			err = nsqSubscribe(ctx, free[0])
		}
		return started(s, err)
	}
}

func openAsynq(ctx context.Context, _ int) (*site, error) {
	s, free, err := newPeer(ctx)
	if err != nil {
		return nil, err
	}
	s.pushWith(kindAsynq, free[1])
	err = s.Launch(ctx, brokerProgram, free[1:], kindAsynq, free[1])
	if err == nil {
		err = s.Launch(ctx, handlerProgram, free[:1], kindAsynq, free[0], free[1])
	}
	return started(s, err)
}
