package main

import (
	"time"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/internal/tail"
)

func newTailCommand() *cobra.Command {
	var bus busFlags
	var options tail.Options
	command := &cobra.Command{
		Use:   "tail TOPIC [TOPIC...]",
		Short: "show the events of topics as they are published",
		Long: `Subscribe to topics for as long as this runs, and print each event. Ctrl-C ends it and unsubscribes. Only events that
are published from now on are shown: rtm events shows earlier ones of a topic with a history.

A client has one subscription. With the root key, tail creates a client of its own (rtm-tail-…) and removes it at the
end. With a client's token, tail uses that client, unless it has a subscription already, which tail would replace. If
tail is killed, the next one on this host removes what it left.

A topic that does not exist is refused, because it is usually a typing error. --create creates it.

Deliveries. The bus must reach this host by https. If it runs here too (and allows loopback and self-signed
certificates, as rtm dev does) nothing needs to be set. Otherwise --listen is the address to listen on, --cert and --key
a certificate that the bus trusts, and --public-url is the URL at which the bus reaches it. That may be the URL of a
proxy or tunnel; with --plain, the proxy has the certificate. An event is acknowledged once it is printed. A delivery
may be repeated, so an event may be shown twice.

Commands. --exec CMD runs "sh -c CMD" for every event instead of printing it: one at a time, in order, with the event as
JSON on its standard input and RTM_TOPIC, RTM_TYPE, RTM_URL and RTM_TIMESTAMP (ms) in its environment. If it fails, that
is reported and the next event follows, so that one bad event does not hold up the others. A command has --exec-timeout
to finish; one that takes longer than the bus waits for a delivery (ROUTEMASTER_TIMEOUT, usually 20 s) is run again.

With --exec-retry the bus delivers an event again until its command succeeds, at growing intervals of up to a minute.
Those behind it go on and may overtake it. Then --batch-size may be more than 1: the answer to a delivery is a receipt,
so that only the events whose commands failed come again. Those whose commands would begin too late for --exec-timeout
come again too. For receipts the subscription has the option partial: leave it on (rtm sub set) while this runs.

The exit status is 0 after Ctrl-C, or when the output is closed; 1 after a failure, also to unsubscribe; 2 for wrong
usage.`,
		Example: `  rtm tail widgets -b http://127.0.0.1:17890 -t ROOT_KEY
  rtm tail widgets gadgets -b @staging --json | jq .url
  rtm tail orders -b @staging --exec 'curl -fsS -d @- localhost:3000/events'
  rtm tail orders -b @staging --exec ./handle --exec-retry --batch-size 20
  rtm tail orders -b @production --plain --listen 127.0.0.1:8080 --public-url https://me.tunnel.example/`,
		Args:              arguments(1, -1),
		ValidArgsFunction: bus.completeTopics(0, -1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			options.Topics, options.Out, options.Errors = args, cmd.OutOrStdout(), cmd.ErrOrStderr()
			bus.stderr = options.Errors
			if options.BusURL, options.Token, err = bus.resolve(); err != nil {
				return usageError{err}
			}
			if err := options.Validate(); err != nil {
				return usageError{err}
			}
			options.Connect = func(token string) (*client.Client, error) {
				as := bus
				as.bus, as.token = options.BusURL, token
				return as.client()
			}
			return explain(tail.Run(cmd.Context(), options))
		},
	}
	bus.add(command)
	flags := command.Flags()
	flags.BoolVar(&options.JSON, "json", false, "print each event as one line of JSON, as it is delivered")
	flags.BoolVar(&options.Create, "create", false, "create topics that do not exist; they stay")
	flags.StringVar(&options.Exec.Command, "exec", "", "run a `command` for every event, instead of printing it")
	flags.BoolVar(&options.Exec.Retry, "exec-retry", false, "have an event delivered again if its command fails")
	flags.DurationVar(&options.Exec.Timeout, "exec-timeout", 15*time.Second, "kill a command that runs longer, as failed")
	flags.IntVar(&options.Latency, "latency", 0, "how many `ms` a batch waits for more events")
	flags.IntVar(&options.BatchSize, "batch-size", 0, "maximum of events in a delivery (default 100; with --exec 1)")
	flags.StringVar(&options.Listen, "listen", "127.0.0.1:0", "`HOST:PORT` to receive deliveries at")
	flags.StringVar(&options.PublicURL, "public-url", "", "https `URL` at which the bus reaches that")
	flags.BoolVar(&options.Plain, "plain", false, "listen without TLS, behind a proxy at the public URL that has it")
	flags.StringVar(&options.CertFile, "cert", "", "PEM `file` of the certificate (default: a self-signed one)")
	flags.StringVar(&options.KeyFile, "key", "", "PEM `file` of its key")
	return command
}
