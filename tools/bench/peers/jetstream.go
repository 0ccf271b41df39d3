package main

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// subject is where events are published.
const subject = topic + ".events"

// runNATS runs a server with JetStream, with its defaults: files are written at once, and synced
// every two minutes.
func runNATS(address, directory string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{
		Host: host, Port: number, JetStream: true, StoreDir: directory, NoSigs: true,
	})
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()
	return nil
}

// storages are where a stream is kept, by their names.
var storages = map[string]jetstream.StorageType{"file": jetstream.FileStorage, "memory": jetstream.MemoryStorage}

// connect connects to the JetStream of a server.
func connect(broker string) (jetstream.JetStream, error) {
	conn, err := nats.Connect("nats://" + broker)
	if err != nil {
		return nil, err
	}
	return jetstream.New(conn)
}

// jetStreamHandler publishes to a stream, which it makes.
func jetStreamHandler(address, broker, storage string) error {
	js, err := connect(broker)
	if err != nil {
		return err
	}
	_, err = js.CreateStream(context.Background(), jetstream.StreamConfig{
		Name: topic, Subjects: []string{subject}, Storage: storages[storage], MaxAge: 24 * time.Hour,
	})
	if err != nil {
		return err
	}
	return serve(address, func(ctx context.Context, event []byte) error {
		_, err := js.Publish(ctx, subject, event)
		return err
	})
}

// jetStreamPusher delivers the messages of a stream. One at a time, events stay in order.
func jetStreamPusher(broker, callback string, inFlight int) error {
	ctx := context.Background()
	js, err := connect(broker)
	if err != nil {
		return err
	}
	consumer, err := js.CreateOrUpdateConsumer(ctx, topic, jetstream.ConsumerConfig{
		Durable: "pusher", AckPolicy: jetstream.AckExplicitPolicy,
	})
	if err != nil {
		return err
	}
	p := newPusher(callback, inFlight)
	messages := make(chan jetstream.Msg)
	for range inFlight {
		go func() {
			for message := range messages {
				for p.push(ctx, message.Data()) != nil {
					time.Sleep(time.Second)
				}
				_ = message.Ack() // else it comes again
			}
		}()
	}
	if _, err := consumer.Consume(func(m jetstream.Msg) { messages <- m }); err != nil {
		return err
	}
	select {}
}
