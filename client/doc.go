// Package client is for Go programs that publish to a Routemaster bus, or subscribe to it.
//
// To publish:
//
//	bus, err := client.New("https://bus.example", os.Getenv("BUS_TOKEN"))
//	…
//	err = bus.Publish(ctx, client.Event{
//		Topic: "widgets", Type: client.Update, URL: "https://warehouse.example/widgets/12",
//	})
//
// When Publish returns nil, the bus has stored the event and will deliver it to every subscriber. A
// request that fails temporarily is sent again, with an idempotency key, so nothing is stored
// twice. [Publisher] publishes in the background, with many events in a request.
//
// To subscribe, serve a callback over HTTPS, and register it with the bus:
//
//	receive := func(ctx context.Context, events []client.Event) error {
//		… // after an error the bus delivers them again
//	}
//	http.Handle("/events", client.NewHandler(uuid, receive))
//	err = bus.Subscribe(ctx, client.Subscription{
//		Topics: []string{"widgets"}, Callback: "https://shop.example/events", UUID: uuid,
//	})
//
// A [Verifier] checks the signatures of deliveries, if the subscriber has a secret.
//
// [Client.Tail] shows the events of a topic while they are published, without a subscription.
//
// Errors never contain the token, the uuid or a secret.
package client
