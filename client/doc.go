// Package client is for Go programs that publish to a Routemaster bus, or subscribe to it.
//
// To publish:
//
//	bus, err := client.New("https://bus.example", os.Getenv("BUS_TOKEN"))
//	…
//	err = bus.Publish(ctx, client.Event{Topic: "widgets", Type: client.Update, URL: "https://warehouse.example/widgets/12"})
//
// When Publish returns nil the event is stored, and every subscriber will get it. A request that fails for a reason that
// may pass is sent again, with an idempotency key, so nothing is stored twice. [Publisher] does that in the background,
// with many events in a request.
//
// To subscribe, serve a callback over HTTPS, and tell the bus where it is:
//
//	http.Handle("/events", client.NewHandler(uuid, func(ctx context.Context, events []client.Event) error {
//		… // an error has them delivered again
//	}))
//	err = bus.Subscribe(ctx, client.Subscription{
//		Topics: []string{"widgets"}, Callback: "https://shop.example/events", UUID: uuid,
//	})
//
// Errors never have the token or the uuid in them.
package client
