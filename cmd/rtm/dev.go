package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"routemaster/client"
	"routemaster/client/jobs"
	"routemaster/internal/app"
	"routemaster/internal/machines"
	"routemaster/internal/telemetry"
	"routemaster/internal/terminal"
)

// devTopic is the topic that rtm dev has ready.
const devTopic = "widgets"

func newDevCommand() *cobra.Command {
	var dev devBus
	command := &cobra.Command{
		Use:   "dev",
		Short: "run the whole bus in one process, with a subscriber that prints what it receives",
		Long: `Run web and worker in one process on loopback, with a subscriber that prints each batch it receives, and a
service that prints each job and reports that it is done. Publish one event, and enqueue one job. Then print commands
to try next, and run until Ctrl-C.

--machines runs state machines too, in place of the ones in ROUTEMASTER_MACHINES. {placeholders.service} is then the address
of the service, whatever the files say: it prints the webhooks and feeds requested there, and answers 200 with {}. Others
are requested where the files say.

The root key is kept in $XDG_STATE_HOME/routemaster/dev-root-key (or in ~/.local/state), unless ROUTEMASTER_ROOT_KEY gives
one, and the tokens follow from it. So they are the same at each start.

Settings come from the environment, as for the daemons, except those that a bus on loopback needs. With DOWNSTREAM_URL
jobs go there instead of to the built-in service.`,
		Example: "  rtm dev\n  rtm dev --port 8080 --redis-url redis://localhost:6379/0\n" +
			"  rtm dev --machines examples/machines/welcome.yaml",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dev.in, dev.out, dev.errors = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return dev.run(cmd.Context())
		},
	}
	command.Flags().IntVar(&dev.port, "port", 17890, "port of the HTTP API")
	command.Flags().StringVar(&dev.redisURL, "redis-url", "", "a real Redis instead of the embedded engine")
	command.Flags().StringSliceVar(&dev.machineFiles, "machines", nil,
		"run the state machines of `FILE[,FILE]`: layers, of which earlier ones win")
	_ = command.MarkFlagFilename("machines", "yaml", "yml")
	return command
}

// passTime has keys expire, which the embedded engine does only when it is told how long it was.
func passTime(ctx context.Context, engine *miniredis.Miniredis) error {
	for last := time.Now(); ; {
		select {
		case <-time.After(time.Second):
			now := time.Now()
			engine.FastForward(now.Sub(last))
			last = now
		case <-ctx.Done():
			return nil
		}
	}
}

// devBus is the whole bus in one process.
type devBus struct {
	port         int
	redisURL     string
	machineFiles []string
	// out gets the events, jobs and webhooks, errors the log; in is the standard input.
	in          io.Reader
	out, errors io.Writer

	config app.Config
	// machines are the definitions from --machines; nil if there are none.
	machines *machines.Definitions
	api      string
	receiver *devReceiver
	service  *devService
	// batches has every delivery, in order.
	batches chan []client.Event
	// jobs has every job, in order. It is nil if the environment has another service.
	jobs chan devJob
}

func (d *devBus) run(ctx context.Context) error {
	if err := d.configure(); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	var err error
	if d.service, err = newDevService(ctx); err != nil {
		return err
	}
	defer d.service.close() // after the worker, which may still be calling it
	if err := d.loadMachines(); err != nil {
		return err
	}
	embedded := d.redisURL == ""
	if embedded {
		engine := miniredis.NewMiniRedis()
		if err := engine.Start(); err != nil {
			return err
		}
		defer engine.Close()
		group.Go(func() error { return passTime(ctx, engine) })
		d.config.RedisURL = "redis://" + engine.Addr() + "?dial_timeout=60&read_timeout=60" // a stall of this process, as on a closed laptop, is no outage
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", d.port))
	if err != nil {
		return fmt.Errorf("%w; --port chooses another port", err)
	}
	d.api = "http://" + listener.Addr().String()
	d.batches = make(chan []client.Event)
	d.receiver, err = newDevReceiver(func(delivery context.Context, events []client.Event) error {
		select {
		case d.batches <- events:
			return nil
		case <-delivery.Done():
			return delivery.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer d.receiver.close() // likewise

	log := telemetry.NewLogger(d.errors, d.config.LogLevel, d.config.LogJSON)
	defer telemetry.Flush(log)
	if d.config.DownstreamURL == "" {
		d.config.DownstreamURL, d.config.DownstreamAuth = d.service.url(), d.service.password
		d.jobs = d.service.taken
	}
	group.Go(func() error { return app.ServeWeb(ctx, d.config, log, listener) })
	group.Go(func() error { return app.RunWorker(ctx, d.config, log) })
	group.Go(func() error { return d.show(ctx, embedded) })
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// configure reads the environment, and overrides some of it for a bus on loopback.
func (d *devBus) configure() (err error) {
	overruled := map[string]string{}
	if d.redisURL != "" {
		if err := requireOneRedis(d.redisURL); err != nil {
			return err
		}
		overruleRedis(overruled, d.redisURL)
	}
	d.config, err = loadConfig(overruled, map[string]string{
		"ROUTEMASTER_LOG_LEVEL":       "WARN", // the screen is for the events
		"ROUTEMASTER_SSL_VERIFY":      "NO",   // a subscriber on loopback signs its own certificate
		"ROUTEMASTER_CALLBACK_DENY":   "none", // and is on loopback
		"ROUTEMASTER_ACQUIRE_TIMEOUT": "1",
	})
	if err != nil {
		return err
	}
	if d.config.RootKey == "" {
		d.config.RootKey = devRootKey()
	}
	d.config.ForceTLS = false
	d.config.MetricsAddr = "" // web serves the metrics of the process
	d.config.ConsoleAddr = "" // and the console
	return nil
}

// show sets up a client and a subscriber over the HTTP API, and shows an event delivered and a job
// done. Then it shows all further deliveries and jobs until the context is done.
func (d *devBus) show(ctx context.Context, embedded bool) error {
	publisher, err := d.token(ctx, "dev")
	if err != nil {
		return err
	}
	subscriber, err := d.token(ctx, "dev-printer")
	if err != nil {
		return err
	}
	var noTimeout time.Duration
	subscription := client.Subscription{Topics: []string{devTopic}, Callback: d.receiver.url(), UUID: d.receiver.uuid, Timeout: &noTimeout}
	if err := d.as(subscriber).Subscribe(ctx, subscription); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "Routemaster runs: the whole bus in one process, with a subscriber to topic %q that prints what it receives.\n", devTopic)
	if d.config.Console != "off" {
		fmt.Fprintf(d.out, "Look at it in a browser: %s/console/ (log in with %s, the root key).\n", d.api, d.config.RootKey)
	}
	if embedded {
		fmt.Fprintln(d.out, "The embedded engine keeps nothing after exit and has no memory limit; --redis-url uses a real Redis.")
	}
	if err := d.showEvent(ctx, d.as(publisher)); err != nil {
		return err
	}
	queue := jobs.New(d.as(publisher))
	if err := addDevJobType(ctx, queue); err != nil {
		return err
	}
	if d.jobs != nil && d.config.JobThreads > 0 {
		if err := d.showJob(ctx, queue); err != nil {
			return err
		}
	}
	if err := d.applyMachines(ctx); err != nil {
		return err
	}
	d.showCommands(publisher, subscriber)
	return d.watch(ctx, queue)
}

// showEvent publishes an event, and prints it when it is delivered.
func (d *devBus) showEvent(ctx context.Context, publisher *client.Client) error {
	event := client.Event{Topic: devTopic, Type: client.Create, URL: "https://example.com/widgets/1", Data: json.RawMessage(`{"colour":"red"}`)}
	text, _ := json.Marshal(event)
	fmt.Fprintf(d.out, "\n-> published to %s: %s\n", devTopic, text)
	published := time.Now()
	if err := publisher.Publish(ctx, event); err != nil {
		return err
	}
	select {
	case events := <-d.batches:
		fmt.Fprintf(d.out, "<- delivered after %v: %s\n", time.Since(published).Round(100*time.Microsecond), terminal.JSON(events))
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// watch prints every batch and webhook, and does every job, until the context is done.
func (d *devBus) watch(ctx context.Context, queue *jobs.Jobs) error {
	for {
		select {
		case events := <-d.batches:
			fmt.Fprintf(d.out, "<- %s\n", terminal.JSON(events))
		case job := <-d.jobs:
			d.do(ctx, queue, job)
		case request := <-d.service.requests:
			fmt.Fprintf(d.out, "<- %s\n", terminal.Escape(request))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (d *devBus) showCommands(publisher, subscriber string) {
	received := "What the subscriber and the service receive is printed here:"
	if d.jobs == nil && d.machines == nil {
		received = "What the subscriber receives is printed here:"
	}
	if d.jobs == nil {
		received = "Jobs go to " + d.config.DownstreamURL + ". " + received
	}
	fmt.Fprintf(d.out, `
Go on in another terminal (your bus is at %[1]s, your token is %[2]s):

  # use this bus with rtm, in this terminal; both stay the same from start to start
  export ROUTEMASTER_BUS=%[1]s
  export ROUTEMASTER_TOKEN=%[2]s

  # publish an event
  curl -i -u %[2]s: %[1]s/topics/%[5]s -d '{"type":"update","url":"https://example.com/widgets/1"}'

  # subscribe the printing subscriber to two topics, in batches of up to 10 that wait 2 s for more events
  curl -i -u %[3]s: %[1]s/subscription -d '{"topics":["%[5]s","gadgets"],"callback":"%[6]s","uuid":"%[10]s","timeout":2000,"max":10}'
  curl -i -u %[2]s: %[1]s/topics/gadgets -d '{"type":"noop","url":"https://example.com/gadgets/7"}'

  # watch events as they are published
  bin/rtm tail %[5]s -b %[1]s -t %[4]s

  # enqueue a job (it needs an id; here the bus makes one)
  curl -i -u %[2]s: %[1]s/v1/jobs/%[7]s/random_id -X PUT -d '{"data":{"widget":2}}'

  # look around
  curl -s -u %[2]s: %[1]s/topics
  curl -s -u %[2]s: %[1]s/subscriptions
  curl -s -u %[2]s: %[1]s/v1/archived-jobs
%[9]s
  # let another client in (the user name is the root key)
  curl -s -u %[4]s: %[1]s/api_tokens -d '{"name":"my-service"}'

Ctrl-C stops it. %[8]s
`, d.api, publisher, subscriber, d.config.RootKey, devTopic, d.receiver.url(), devJobType, received, d.machineCommands(publisher), d.receiver.uuid)
}

// token returns the token of a client: the one that an earlier run left in Redis, else [devToken].
func (d *devBus) token(ctx context.Context, name string) (string, error) {
	root := d.as(d.config.RootKey)
	known, err := root.Tokens(ctx)
	if err != nil {
		return "", err
	}
	for _, token := range known {
		if token.Name == name {
			return token.Token, nil
		}
	}
	made, err := root.AddToken(ctx, name, devToken(d.config.RootKey, name))
	return made.Token, err
}

// as returns a client of the bus, with a token or the root key.
func (d *devBus) as(token string) *client.Client {
	c, err := client.New(d.api, token, client.WithHTTPClient(http.DefaultClient))
	if err != nil {
		panic(err) // the URL is ours
	}
	return c
}
