package main

import (
	"context"
	"time"

	"github.com/hibiken/asynq"
)

// asynqHandler enqueues a task for each event.
func asynqHandler(address, redis string) error {
	client := asynq.NewClient(asynq.RedisClientOpt{Addr: redis})
	return serve(address, func(ctx context.Context, event []byte) error {
		_, err := client.EnqueueContext(ctx, asynq.NewTask(topic, event))
		return err
	})
}

// asynqPusher does the tasks, which deliver. One at a time, events stay in order until one fails.
func asynqPusher(redis, callback string, inFlight int) error {
	server := asynq.NewServer(asynq.RedisClientOpt{Addr: redis}, asynq.Config{
		Concurrency: inFlight, LogLevel: asynq.WarnLevel,
		TaskCheckInterval: 10 * time.Millisecond, // else an empty queue is looked at once a second
	})
	p := newPusher(callback, inFlight)
	return server.Run(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		return p.push(ctx, task.Payload())
	}))
}
