package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/internal/bus"
)

// eventWords are the words for event types: the Ruby client's first, then the bus's own.
var eventWords = map[string]client.EventType{
	"created": client.Create, "updated": client.Update, "deleted": client.Delete, "noop": client.Noop,
	"create": client.Create, "update": client.Update, "delete": client.Delete,
}

// eventWordsText says which words there are.
const eventWordsText = "created, updated, deleted or noop"

func newPubCommand() *cobra.Command {
	var to busFlags
	var data, timestamp, file, key string
	command := &cobra.Command{
		Use:   "pub EVENT TOPIC URL",
		Short: "publish an event, or a file of them",
		Long: `Publish an event to a topic: EVENT is created, updated, deleted or noop, and URL is the thing's. It is stored once, even
if the request has to be sent again.

With --file, "rtm pub --file FILE [TOPIC]" publishes the events of a file, one JSON object a line, in order:

  {"topic": "widgets", "type": "update", "url": "https://warehouse.example/widgets/12"}

topic can be left out if TOPIC is given; timestamp (ms since the Unix epoch) and data are optional. A file is read to the
end first: if a line is wrong, nothing is published. (Only the bus knows how large data may be, and who owns a topic.) If
publishing stops in the middle, run the same command again. Within 24 hours it adds no event twice, unless the file has
grown or a stream ended early: then events of the last request may be published again. If the same client publishes two
files with the same lines in the same places within 24 hours, give the second one a --key of its own.`,
		Example: "  rtm pub updated widgets https://warehouse.example/widgets/12 -b @production\n" +
			"  rtm pub created widgets https://warehouse.example/widgets/13 --data '{\"stock\":3}' --timestamp 2026-01-31T12:00:00Z\n" +
			"  rtm pub --file events.ndjson -b @production\n  zcat events.gz | rtm pub --file - widgets -b @production",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("file") {
				if len(args) > 1 {
					return usageError{fmt.Errorf("got %d arguments; usage: rtm pub --file FILE [TOPIC]", len(args))}
				}
				return nil
			}
			return arguments(3, 3)(cmd, args)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			of := row{use: "pub EVENT TOPIC URL", kinds: []kind{{words: []string{"created", "updated", "deleted", "noop"}}, topic, anything}}
			if file != "" {
				of = row{use: "pub [TOPIC]", kinds: []kind{topic}}
			}
			return of.complete(&to)(cmd, args, start)
		},
	}
	publish := to.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		event, err := readEvent(args, data, timestamp)
		if err != nil {
			return err
		}
		var options []client.PublishOption
		if key != "" {
			options = append(options, client.WithIdempotencyKey(key), client.WithIdempotencyTTL(keyTTL))
		}
		return c.Publish(cmd.Context(), event, options...)
	})
	command.RunE = func(cmd *cobra.Command, args []string) error {
		for _, flag := range []string{"data", "timestamp", "file", "key"} { // for example from an unset variable of a script
			if cmd.Flags().Changed(flag) && cmd.Flags().Lookup(flag).Value.String() == "" {
				return wrongFlag(flag, "given a value, or left out")
			}
		}
		switch {
		case !cmd.Flags().Changed("file"):
			return publish(cmd, args)
		case data != "" || timestamp != "":
			return usageError{errors.New("--data and --timestamp are for one event; in a file each line has its own")}
		}
		return loadFile(cmd, &to, file, args, key)
	}
	to.add(command)
	flags := command.Flags()
	flags.StringVar(&data, "data", "", "the event's data, a `JSON` value")
	flags.StringVar(&timestamp, "timestamp", "", "`TIME` of the event, in ms since the Unix epoch or in RFC 3339 (default: the time of receipt)")
	flags.StringVar(&file, "file", "", "publish the events of this `FILE`, one JSON object a line; - is the standard input")
	flags.StringVar(&key, "key", "", "idempotency `KEY`: within 24 hours, publishes with the same key are stored once; with --file it distinguishes loads of the same lines")
	return command
}

// readEvent makes an event of EVENT, TOPIC and URL. Errors are [usageError]s.
func readEvent(args []string, data, timestamp string) (client.Event, error) {
	kind, ok := eventWords[args[0]]
	if !ok {
		return client.Event{}, usageError{fmt.Errorf("%q is not an event type; give %s", args[0], eventWordsText)}
	}
	event := client.Event{Topic: args[1], Type: kind, URL: args[2]}
	if data != "" {
		if !jsontext.Value(data).IsValid() {
			return event, wrongFlag("data", `a JSON value without duplicate names, such as {"stock":3} or "text"`)
		}
		event.Data = json.RawMessage(data)
	}
	if timestamp == "" {
		return event, nil
	}
	if ms, err := strconv.ParseInt(timestamp, 10, 64); err == nil {
		event.Timestamp = time.UnixMilli(ms)
	} else if event.Timestamp, ok = bus.ParseTime(timestamp); !ok {
		return event, wrongFlag("timestamp", "in ms since the Unix epoch, or like 2026-01-31T12:00:00Z")
	}
	return event, nil
}
