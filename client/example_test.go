package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"routemaster/client"
)

// exampleBus is a bus reduced to the needs of the examples: it prints the published events.
func exampleBus() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"http://`) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"status":400,"title":"Bad Request","detail":"must be an https URL","pointer":"/url"}`)
			return
		}
		fmt.Println(r.Method, r.URL.Path, string(body))
		w.WriteHeader(http.StatusOK)
	}))
}

func ExampleClient_Publish() {
	server := exampleBus()
	defer server.Close()

	bus, err := client.New(server.URL, "warehouse--1")
	if err != nil {
		panic(err)
	}
	err = bus.Publish(context.Background(), client.Event{
		Topic: "widgets", Type: client.Update, URL: "https://warehouse.example/widgets/12", Data: json.RawMessage(`{"stock":3}`),
	})
	fmt.Println(err)
	// Output:
	// POST /topics/widgets {"type":"update","url":"https://warehouse.example/widgets/12","data":{"stock":3}}
	// <nil>
}

func ExampleClient_PublishAll() {
	server := exampleBus()
	defer server.Close()

	bus, err := client.New(server.URL, "warehouse--1")
	if err != nil {
		panic(err)
	}
	// With a key of your own the same events can be published again, after a crash for example, and
	// are stored once.
	err = bus.PublishAll(context.Background(), "widgets", []client.Event{
		{Type: client.Create, URL: "https://warehouse.example/widgets/13"},
		{Type: client.Delete, URL: "https://warehouse.example/widgets/12"},
	}, client.WithIdempotencyKey("import-7-part-1"))
	fmt.Println(err)
	// Output:
	// POST /topics/widgets [{"type":"create","url":"https://warehouse.example/widgets/13"},{"type":"delete","url":"https://warehouse.example/widgets/12"}]
	// <nil>
}

func ExampleError() {
	server := exampleBus()
	defer server.Close()

	bus, err := client.New(server.URL, "warehouse--1")
	if err != nil {
		panic(err)
	}
	err = bus.Publish(context.Background(), client.Event{Topic: "widgets", Type: client.Update, URL: "http://warehouse.example/12"})
	var refused *client.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Status, refused.Pointer, refused.Detail)
	}
	fmt.Println(client.IsTemporary(err))
	// Output:
	// 400 /url must be an https URL
	// false
}

func ExamplePublisher() {
	server := exampleBus()
	defer server.Close()

	bus, err := client.New(server.URL, "warehouse--1")
	if err != nil {
		panic(err)
	}
	publisher := client.NewPublisher(bus, client.WithLostHandler(func(events []client.Event, err error) {
		fmt.Println("lost", len(events), "events:", err)
	}))
	// This does not wait for the bus.
	err = publisher.Publish(context.Background(), client.Event{
		Topic: "widgets", Type: client.Update, URL: "https://warehouse.example/widgets/12",
	})
	fmt.Println(err)
	fmt.Println(publisher.Close(context.Background())) // when the program stops
	// Unordered output:
	// <nil>
	// POST /topics/widgets [{"type":"update","url":"https://warehouse.example/widgets/12"}]
	// <nil>
}

func ExampleNewHandler() {
	const uuid = "a-secret-of-yours"
	handler := client.NewHandler(uuid, func(_ context.Context, events []client.Event) error {
		for _, event := range events {
			fmt.Println(event.Topic, event.Type, event.URL, event.Timestamp.UTC())
		}
		return nil // an error would have them delivered again
	})
	// In a program: http.Handle("/events", handler), over HTTPS, and then bus.Subscribe. The bus
	// calls it like this:
	delivery := httptest.NewRequest("POST", "/events", strings.NewReader(
		`[{"topic":"widgets","type":"update","url":"https://warehouse.example/widgets/12","t":1700000000000}]`))
	delivery.SetBasicAuth(uuid, "x")
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, delivery)
	fmt.Println(response.Code)
	// Output:
	// widgets update https://warehouse.example/widgets/12 2023-11-14 22:13:20 +0000 UTC
	// 204
}

func ExampleClient_Subscribe() {
	server := exampleBus()
	defer server.Close()

	bus, err := client.New(server.URL, "shop--1")
	if err != nil {
		panic(err)
	}
	err = bus.Subscribe(context.Background(), client.Subscription{
		Topics: []string{"widgets", "parcels"}, Callback: "https://shop.example/events", UUID: "a-secret-of-yours", Max: 50,
	})
	fmt.Println(err)
	// Output:
	// POST /subscription {"callback":"https://shop.example/events","max":50,"topics":["widgets","parcels"],"uuid":"a-secret-of-yours"}
	// <nil>
}
