// Command receivers is an example subscriber: it prints each event and acknowledges the batch.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"routemaster/client"
)

// receive handles a batch. An error would have the bus deliver it again.
func receive(_ context.Context, events []client.Event) error {
	for _, event := range events {
		fmt.Println(event.Topic, event.Type, event.URL)
	}
	return nil
}

func main() {
	// The handler refuses deliveries that do not carry the uuid of the subscription and, if there is
	// a secret, those that are not signed with it.
	var options []client.HandlerOption
	if secret := os.Getenv("SECRET"); secret != "" {
		verifier, err := client.NewVerifier(secret)
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, client.WithVerifier(verifier))
	}
	http.Handle("/events", client.NewHandler(os.Getenv("UUID"), receive, options...))
	log.Fatal(http.ListenAndServeTLS(
		"127.0.0.1:"+os.Getenv("PORT"), os.Getenv("CERT"), os.Getenv("KEY"), nil))
}
