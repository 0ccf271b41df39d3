package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"routemaster/internal/app"
	"routemaster/internal/buscopy"
	"routemaster/internal/format"
	"routemaster/internal/rdb"
	"routemaster/internal/terminal"
)

// errNotEqual says that a copy is complete but differs from its source.
var errNotEqual = errors.New("the target is not equal to the source: web and worker do not start on it; " +
	"find out why, and copy again, with --restart")

func newCopyCommand() *cobra.Command {
	var c busCopy
	command := &cobra.Command{
		Use:   "copy --from URL --to URL",
		Short: "copy a whole bus to another Redis, to a Redis Cluster or back, while it is stopped",
		Long: `Copy all of a bus from one Redis to another: to a Redis Cluster (after rtm cluster create), back, or to another number of
partitions. Stop its web and worker processes before, and start them on the new Redis when it is done. The old Redis is
only read. The new one must be empty.

When all is copied, both sides are counted and examined as by rtm doctor, and what they have is printed. Until they are
equal, web and worker do not start on the new Redis. A copy that was stopped leaves it so; --restart begins it again.

The namespaces are the environment's unless flags say otherwise. The exit status is 0 when the copy is equal to the bus,
1 when it is not or something failed, 2 for wrong usage. See docs/scaling.md.`,
		Example: "  rtm copy --from redis://localhost:6379/0 --to redis+cluster://localhost:7000\n" +
			"  rtm copy --from redis+cluster://localhost:7000 --to redis://localhost:6379/0 --restart",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.out, c.errors = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return c.run(cmd)
		},
	}
	flags := command.Flags()
	flags.StringVar(&c.from.url, "from", "", "the Redis that the bus is on")
	flags.StringVar(&c.to.url, "to", "", "the Redis to copy it to, which is empty")
	flags.StringVar(&c.from.namespace, "from-namespace", "", "the prefix of all keys there, instead of the environment's")
	flags.StringVar(&c.to.namespace, "to-namespace", "", "the prefix of all keys there, instead of the environment's")
	flags.BoolVar(&c.Restart, "restart", false, "remove what a copy that was broken off has left, and begin again")
	flags.BoolVar(&c.Force, "force", false, "copy although processes were seen lately: they have stopped since")
	flags.BoolVar(&c.json, "json", false, "print JSON: what both sides have, and what doctor finds")
	return command
}

// busCopy is a run of rtm copy.
type busCopy struct {
	buscopy.Options
	from, to    redisFlags
	json        bool
	out, errors io.Writer
}

func (c *busCopy) run(cmd *cobra.Command) error {
	configs := [2]app.Config{}
	for i, side := range []struct {
		name string
		redisFlags
	}{{"from", c.from}, {"to", c.to}} {
		config, err := side.configOf(cmd, side.name)
		if err != nil {
			return err
		}
		configs[i] = config
	}
	if configs[0].RedisURL == configs[1].RedisURL && configs[0].RedisNamespace == configs[1].RedisNamespace {
		return usageError{errors.New("--from and --to are the same bus: another Redis, or another namespace, is needed")}
	}
	ctx := cmd.Context()
	from, source, err := openBus(ctx, configs[0])
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	defer from.Close()
	to, target, err := openBus(ctx, configs[1])
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	defer to.Close()
	c.From, c.To = source, target
	return c.copy(ctx)
}

// copy copies the bus, and prints the result.
func (c *busCopy) copy(ctx context.Context) error {
	began, progress := time.Now(), &copyProgress{w: c.errors, isTerminal: terminal.Is(c.errors)}
	c.Progress = progress.show
	report, err := buscopy.Run(ctx, c.Options)
	progress.end()
	if ctx.Err() != nil {
		return errors.New("stopped before the end; the source is as it was, and --restart begins again")
	}
	if err != nil {
		return err
	}
	if c.json {
		writeJSONLine(c.out, report)
	} else {
		c.print(report, time.Since(began))
	}
	if !report.IsEqual() {
		return errNotEqual
	}
	return nil
}

// print prints the counts of both sides: a row for each kind of data that operators know, and for
// every kind that differs.
func (c *busCopy) print(report buscopy.Report, took time.Duration) {
	table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tsource\ttarget\t")
	for _, row := range report.Rows {
		differs := ""
		if row.Source != row.Target {
			differs = "differs"
		} else if !row.IsMain {
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", printable(row.What), format.Count(row.Source), format.Count(row.Target), differs)
	}
	_ = table.Flush() // as the next line, it is printed as far as can be
	for _, finding := range report.Findings {
		fmt.Fprintf(c.out, "In the target, not in the source: %s\n", printable(finding))
	}
	if report.IsEqual() {
		fmt.Fprintf(c.out, "Copied in %v: %s compared, all equal. Start web and worker on the new Redis; the old one is as it was.\n",
			took.Round(time.Millisecond), format.Plural(int64(len(report.Rows)), "count"))
	}
}

// copyProgress shows how far a copy is: a bar on a terminal, else a line when a step begins.
type copyProgress struct {
	w          io.Writer
	isTerminal bool
	step       string
	bar        *progressbar.ProgressBar
}

func (p *copyProgress) show(step string, done, all int) {
	if step != p.step {
		p.end()
		p.step = step
		if !p.isTerminal {
			fmt.Fprintln(p.w, "rtm:", step)
			return
		}
		p.bar = progressbar.NewOptions(all,
			progressbar.OptionSetWriter(p.w), progressbar.OptionSetDescription(step), progressbar.OptionShowCount(),
			progressbar.OptionShowIts(), progressbar.OptionSetItsString("keys"), progressbar.OptionThrottle(100*time.Millisecond))
	}
	if p.bar != nil {
		_ = p.bar.Set(done)
	}
}

// end ends the line of the bar.
func (p *copyProgress) end() {
	if p.bar != nil {
		_ = p.bar.Exit()
		p.bar = nil
	}
}

// configOf is the configuration of the environment with the Redis of a flag, and its namespace.
func (f redisFlags) configOf(cmd *cobra.Command, name string) (app.Config, error) {
	if f.url == "" {
		return app.Config{}, wrongFlag(name, "the URL of a Redis")
	}
	overruled := map[string]string{}
	overruleRedis(overruled, f.url)
	if cmd.Flags().Changed(name + "-namespace") {
		overruled["ROUTEMASTER_REDIS_NAMESPACE"] = f.namespace
	}
	config, err := loadConfig(overruled, nil)
	if err != nil {
		err = fmt.Errorf("--%s: %w", name, err)
	}
	return config, err
}

// openBus opens the partitions of a bus. The caller closes the client.
func openBus(ctx context.Context, config app.Config) (*rdb.Client, rdb.Partitions, error) {
	redis, err := rdb.Open(rdb.Options{URL: config.RedisURL, Connections: 4})
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
