package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	client "github.com/nsqio/go-nsq"
	"github.com/nsqio/nsq/nsqd"
)

// channel is the one that the pusher consumes.
const channel = "pusher"

// nsqPath is where nsqd itself takes events by POST: it needs no handler.
const nsqPath = "/pub?topic=" + topic

// runNSQD runs nsqd. It keeps so many messages of each queue in memory, and the others on disk,
// with its defaults: files are synced every 2,500 messages or 2 s.
func runNSQD(tcpAddress, httpAddress, directory string, memory int64) error {
	options := nsqd.NewOptions()
	options.TCPAddress, options.HTTPAddress, options.DataPath = tcpAddress, httpAddress, directory
	options.MemQueueSize, options.LogLevel = memory, nsqd.LOG_WARN
	daemon, err := nsqd.New(options)
	if err != nil {
		return err
	}
	if err := daemon.LoadMetadata(); err != nil {
		return err
	}
	return daemon.Main()
}

// nsqSubscribe makes topic and channel, as a pusher would have long before.
func nsqSubscribe(ctx context.Context, address string) error {
	for _, path := range []string{"/topic/create?topic=" + topic, "/channel/create?topic=" + topic + "&channel=" + channel} {
		if err := post(ctx, "http://"+address+path); err != nil {
			return err
		}
	}
	return nil
}

func post(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}

// nsqPusher delivers the messages of a channel. nsqd promises no order.
func nsqPusher(tcp, callback string, inFlight int) error {
	config := client.NewConfig()
	config.MaxInFlight = inFlight
	config.OutputBufferTimeout = 25 * time.Millisecond // else a message waits in a buffer for 250
	consumer, err := client.NewConsumer(topic, channel, config)
	if err != nil {
		return err
	}
	consumer.SetLoggerLevel(client.LogLevelWarning)
	p := newPusher(callback, inFlight)
	consumer.AddConcurrentHandlers(client.HandlerFunc(func(m *client.Message) error {
		return p.push(context.Background(), m.Body)
	}), inFlight)
	if err := consumer.ConnectToNSQD(tcp); err != nil {
		return err
	}
	<-consumer.StopChan
	return nil
}
