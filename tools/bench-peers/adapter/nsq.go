package adapter

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

// NSQPath is where nsqd itself takes events by POST: it needs no handler.
const NSQPath = "/pub?topic=" + topic

// NSQ runs nsqd. It keeps so many messages of each queue in memory, and the others on disk, with
// its defaults: files are synced every 2,500 messages or 2 s.
func NSQ(tcp, http, directory string, memory int64) error {
	options := nsqd.NewOptions()
	options.TCPAddress, options.HTTPAddress, options.DataPath = tcp, http, directory
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

// NSQSubscribe makes topic and channel, as a pusher would have long before.
func NSQSubscribe(ctx context.Context, http string) error {
	for _, path := range []string{"/topic/create?topic=" + topic, "/channel/create?topic=" + topic + "&channel=" + channel} {
		if err := post(ctx, "http://"+http+path); err != nil {
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

// NSQPusher delivers what a channel has. nsqd promises no order.
func NSQPusher(tcp, callback string, inFlight int) error {
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
