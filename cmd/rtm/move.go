package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/format"
	"routemaster/internal/move"
	"routemaster/internal/rdb"
)

// errNotOver is the error of a run of rtm move that did what it could, and leaves something to do;
// exitNotOver is its exit status.
var errNotOver = errors.New("the move is not over")

const exitNotOver = 3

func newMoveCommand() *cobra.Command {
	var m moving
	command := &cobra.Command{
		Use:   "move --from URL --to URL",
		Short: "move a bus to another Redis, to a Redis Cluster or back, while it runs",
		Long: `Move a bus from one Redis to another: to a Redis Cluster, back, or to another number of partitions. It can be run at
any time, stopped, and run again; each run says what is done, what is left, and what to do next:

  rtm move            copies tokens, topics and subscribers. The bus goes on where it is.
  rtm move --switch   has publishes go to the new Redis from now on. Start its web before: it is not ready until then, and
                      the web of the old Redis is not ready after that. Nothing is delivered yet from the new Redis.
  rtm move            has each subscriber get its events from the new Redis once the workers of the old one have delivered
                      all that waits there for it. So run it until it exits with 0, or with --wait.

Events, batches and dead letters stay where they are. A bus with job types or state machines is refused. See
docs/scaling.md.

With --from-min-replicas and --to-min-replicas so many replicas must confirm what is written. The exit status is 0 when
the move is over or was cancelled, 3 when something is left to do, 1 for a failure, 2 for wrong usage.`,
		Example: "  rtm move --from redis://localhost:6379/0 --to redis+cluster://localhost:7000\n" +
			"  rtm move --from redis://localhost:6379/0 --to redis+cluster://localhost:7000 --switch --wait",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m.out, m.errors = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return m.run(cmd)
		},
	}
	flags := command.Flags()
	flags.StringVar(&m.from.url, "from", "", "the Redis that the bus is on")
	flags.StringVar(&m.to.url, "to", "", "the Redis that it is to be on, which is empty at first")
	flags.StringVar(&m.from.namespace, "from-namespace", "", "the prefix of all keys there, instead of the environment's")
	flags.StringVar(&m.to.namespace, "to-namespace", "", "the prefix of all keys there, instead of the environment's")
	const confirm = "how many replicas must confirm what is written there, instead of the environment's"
	flags.IntVar(&m.from.minReplicas, "from-min-replicas", 0, confirm)
	flags.IntVar(&m.to.minReplicas, "to-min-replicas", 0, confirm)
	flags.BoolVar(&m.Switch, "switch", false, "have publishes go to the new Redis from now on; this cannot be undone")
	flags.BoolVar(&m.Cancel, "cancel", false, "end a move before its switch, and open the old bus if a switch was broken off")
	flags.BoolVar(&m.wait, "wait", false, "after the switch, go on until the move is over")
	flags.BoolVar(&m.json, "json", false, "print JSON: an object, and another when something has changed")
	return command
}

// moving is a run of rtm move.
type moving struct {
	move.Options
	from, to    movedSide
	wait, json  bool
	out, errors io.Writer
}

// movedSide says which Redis a bus is on.
type movedSide struct {
	redisFlags
	minReplicas int
}

func (m *moving) run(cmd *cobra.Command) error {
	if m.Switch && m.Cancel {
		return usageError{errors.New("give --switch or --cancel, not both")}
	}
	var configs [2]app.Config
	flags := [2]string{"from", "to"}
	for i, side := range [2]movedSide{m.from, m.to} {
		config, err := side.configOf(cmd, flags[i])
		if err != nil {
			return err
		}
		configs[i] = config
	}
	if configs[0].RedisURL == configs[1].RedisURL && configs[0].RedisNamespace == configs[1].RedisNamespace {
		return usageError{errors.New("--from and --to are the same bus: another Redis, or another namespace, is needed")}
	}
	ctx := cmd.Context()
	for i, partitions := range []*[]*rdb.Partition{&m.From, &m.To} {
		redis, all, err := openBus(ctx, configs[i])
		if err != nil {
			return fmt.Errorf("--%s: %w", flags[i], err)
		}
		defer redis.Close()
		*partitions = all
	}
	m.Version = app.Version()
	return stopped(ctx, m.goOn(ctx))
}

// stopped is the error of a run, which may say what state it leaves, if somebody has stopped it.
func stopped(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("stopped before the end; run it again to go on: %w", err)
	}
	return err
}

// configOf is the configuration of the environment with the Redis of a flag, its namespace, and how
// many replicas must confirm.
func (f movedSide) configOf(cmd *cobra.Command, name string) (app.Config, error) {
	if f.url == "" {
		return app.Config{}, wrongFlag(name, "the URL of a Redis")
	}
	overruled := map[string]string{}
	overruleRedis(overruled, f.url)
	if cmd.Flags().Changed(name + "-namespace") {
		overruled["ROUTEMASTER_REDIS_NAMESPACE"] = f.namespace
	}
	if flag := cmd.Flags().Lookup(name + "-min-replicas"); flag != nil && flag.Changed {
		overruled["ROUTEMASTER_REDIS_MIN_REPLICAS"] = strconv.Itoa(f.minReplicas)
	}
	config, err := loadConfig(overruled, nil)
	if err != nil {
		err = fmt.Errorf("--%s: %w", name, err)
	}
	return config, err
}

// openBus opens the partitions of a bus. The caller closes the client.
func openBus(ctx context.Context, config app.Config) (*rdb.Client, []*rdb.Partition, error) {
	redis, err := rdb.Open(rdb.Options{URL: config.RedisURL, Connections: 4, MinReplicas: config.MinReplicas})
	if err != nil {
		return nil, nil, err
	}
	partitions, err := findPartitions(ctx, redis, config)
	if err == nil && !partitions[0].IsOneOfSeveral() {
		err = partitions[0].RefuseClusterNode(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, redis.Close())
	}
	return redis, partitions, nil
}

// waitInterval is the pause between two runs that wait for the end, and printInterval that between
// two times that what is left is printed.
const (
	waitInterval  = time.Second
	printInterval = 10 * time.Second
)

// goOn runs the move, again and again if it is to wait for the end.
func (m *moving) goOn(ctx context.Context) error {
	last, isAway, printed := "", false, time.Time{}
	for isDraining := false; ; {
		report, err := move.Run(ctx, m.Options)
		isDraining = isDraining || report.Phase == move.Draining
		// What is left is printed when it has changed.
		text, isDue := fmt.Sprint(report.Phase, report.Waiting), report.Phase == move.Over || time.Since(printed) > printInterval
		if err == nil && text != last && isDue {
			if err = move.Look(ctx, m.Options, &report); err == nil {
				m.print(report)
				last, printed = text, time.Now()
			} else {
				err = fmt.Errorf("%s, but it cannot be said what is left: %w", report.Phase, err)
			}
		}
		switch {
		case err != nil && isDraining && ctx.Err() != nil:
			return errNotOver
		case errors.Is(err, bus.ErrUnavailable) && m.wait && isDraining:
			if !isAway {
				fmt.Fprintf(m.errors, "rtm: redis unavailable, retrying: %s\n", printable(err.Error()))
			}
		case err != nil:
			return err
		case report.Phase == move.Over || report.Phase == move.Cancelled:
			return nil
		case !m.wait || report.Phase != move.Draining:
			return errNotOver
		}
		isAway = err != nil
		select {
		case <-ctx.Done():
			return errNotOver
		case <-time.After(waitInterval):
		}
	}
}

func (m *moving) print(r move.Report) {
	if m.json {
		writeJSONLine(m.out, r)
		return
	}
	m.say(r.Subscribers > 0 || r.Tokens > 0, "Copied %s, %s and %s; %s made now.",
		format.Plural(int64(r.Tokens), "token"), format.Plural(int64(r.Topics), "topic"),
		format.Plural(int64(r.Subscribers), "subscriber"), format.Plural(int64(r.Changed), "change"))
	m.say(r.Released > 0, "%s released: from now on the new Redis delivers.", format.Plural(int64(r.Released), "subscriber"))
	for _, w := range r.Waiting {
		m.printWaiting(w)
	}
	m.say(r.DeadLetters > 0, "Left behind: %s in dead letters. While a web runs on the old Redis, their subscribers can have them "+
		"redelivered there, or discard them.", format.Plural(r.DeadLetters, "event"))
	m.say(r.History > 0, "Left behind: %s in histories of topics, which begin anew.", format.Plural(r.History, "event"))
	switch r.Phase {
	case move.Copied:
		m.say(r.NewWebs == 0, "No web runs on the new Redis. Start it now: until the switch it is not ready, and refuses clients.")
		m.say(r.NewWorkers == 0, "No worker runs on the new Redis. Start it now.")
		m.say(true, "Publishes go to the old Redis. Next: the same with --switch.")
	case move.Draining:
		m.say(r.OldWorkers == 0, "No worker runs on the old Redis: start one, or nothing is delivered that waits there.")
		m.say(r.OldWorkers > 0 && len(r.Waiting) > 0, "If what waits there does not become less, `rtm doctor` in the environment of the old Redis finds counts that are wrong.")
		m.say(r.NewWebs == 0, "No web runs on the new Redis, and publishers get 503: start it.")
		m.say(r.OldWebs > 0, "Still running on the old Redis, and answering 503 to publishers: %s. Stop them.", format.Plural(int64(r.OldWebs), "web"))
		m.say(true, "Publishes go to the new Redis. Next: the same again until nothing waits, or with --wait.")
	case move.Over:
		m.say(true, "All is moved. The old Redis is not needed any more: %s and %s still use it.",
			format.Plural(int64(r.OldWebs), "web"), format.Plural(int64(r.OldWorkers), "worker"))
	case move.Cancelled:
		m.say(true, "The move is cancelled. Publishes go to the old Redis; what was copied to the new one stays there, closed.")
	}
}

// say prints a line, if there is something to be said.
func (m *moving) say(is bool, line string, args ...any) {
	if is {
		fmt.Fprintf(m.out, line+"\n", args...)
	}
}

func (m *moving) printWaiting(w move.Waiting) {
	line := fmt.Sprintf("%s: %s in %s on the old Redis", printable(string(w.Name)), format.Plural(w.Events, "event"), format.Plural(w.Batches, "batch"))
	for _, also := range []struct {
		is   bool
		what string
	}{
		{w.Relaying, "others may be on their way between its partitions"},
		{w.Replaying, "a replay goes on"},
		{w.Paused, "it is paused, so nothing is delivered"},
	} {
		if also.is {
			line += "; " + also.what
		}
	}
	if w.Error != "" {
		line += "; " + printable(w.Error)
	}
	fmt.Fprintln(m.out, line)
}
