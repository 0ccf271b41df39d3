package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"routemaster/internal/app"
	"routemaster/internal/doctor"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// errUnsound says that Redis has an inconsistency that was not repaired.
var errUnsound = errors.New("something is wrong in this Redis")

func newDoctorCommand() *cobra.Command {
	var examination examination
	var redis redisFlags
	command := &cobra.Command{
		Use:   "doctor",
		Short: "find what is inconsistent in a bus's Redis, and repair it",
		Long: `Read a bus's Redis, in small slices, and print what is inconsistent: batches without jobs, jobs without
batches, wrong gauges, leftovers of deleted subscribers. With --fix repair it. The bus may run meanwhile.
Only counts of what changes all the time can then be neither checked nor repaired: stop the workers for these.

That Redis has lost data, as the processes of the bus notice, is an error until --accept-loss acknowledges it. That is
refused while a partition is held, or has come back without its keys: see rtm cluster release.

The namespace must be the bus's own. Unknown keys are printed and skipped; everything else is taken to be the bus's,
and repaired.

Redis is the one of the environment, as for the daemons, unless flags say otherwise. The exit status is 0 when all is
in order or was repaired, 1 when something is wrong and was not repaired or Redis cannot be read, 2 for wrong usage.
On a Redis Cluster it examines all partitions of the bus, and compares them.`,
		Example: "  rtm doctor\n  rtm doctor --fix --redis-url redis://localhost:6379/0",
		Args:    arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := redis.config(cmd)
			if err != nil {
				return err
			}
			examination.out = cmd.OutOrStdout()
			return examination.run(cmd.Context(), config)
		},
	}
	command.Flags().BoolVar(&examination.fix, "fix", false, "repair what can be repaired without losing an event")
	command.Flags().BoolVar(&examination.accept, "accept-loss", false, "acknowledge that Redis has lost data, which is an error until then")
	command.Flags().BoolVar(&examination.json, "json", false, "print JSON: an object for each finding, then one with the counts")
	redis.add(command, "read")
	return command
}

// examination prints doctor's findings.
type examination struct {
	fix, json, accept bool
	out               io.Writer

	repaired, repairable, skipped int
}

// finding is a line of JSON.
type finding struct {
	// Partition is the number of its partition, on a bus that has some.
	Partition string `json:"partition,omitempty"`

	Key     string `json:"key"`
	Problem string `json:"problem"`
	// Remedy is the repair that was done, or that --fix does.
	Remedy string `json:"remedy,omitempty"`
	State  string `json:"state"`
}

// summary is the last line of JSON.
type summary struct {
	Repaired    int      `json:"repaired"`
	Repairable  int      `json:"repairable"`
	Skipped     int      `json:"skipped"`
	Unchecked   []string `json:"unchecked,omitempty"`
	Risks       []string `json:"risks,omitempty"`
	Batches     int      `json:"batches"`
	Jobs        int      `json:"jobs"`
	Subscribers int      `json:"subscribers"`
	Topics      int      `json:"topics"`
	Failing     int      `json:"failing_subscribers"`
	Seconds     float64  `json:"seconds"`
}

func (d *examination) run(ctx context.Context, config app.Config) error {
	began := time.Now()
	redis, partitions, err := openPartitions(ctx, config)
	if err != nil {
		return err
	}
	defer redis.Close()
	if d.accept {
		if err := d.acceptLosses(ctx, partitions); err != nil {
			return err
		}
	}
	var all []*store.Store
	for _, p := range partitions {
		all = append(all, store.New(p, store.Options{}))
	}
	stats, err := doctor.Of(store.NewBus(all...), doctor.Pause).Examine(ctx, d.fix, d.observe)
	if ctx.Err() != nil {
		return errors.New("stopped before the end; what was repaired stays so")
	}
	if err != nil {
		return err
	}
	d.sumUp(stats, time.Since(began))
	if d.repairable+d.skipped > 0 {
		return errUnsound
	}
	return nil
}

// acceptLosses acknowledges that partitions have lost data.
func (d *examination) acceptLosses(ctx context.Context, partitions rdb.Partitions) error {
	if err := refuseHeld(ctx, partitions); err != nil {
		return err
	}
	for _, p := range partitions {
		loss, err := p.AcceptLoss(ctx)
		if loss != nil {
			d.observe(doctor.Finding{Partition: p.NumberIfSeveral(), Key: rdb.IdentityKey, Problem: loss.Kind.String(), Remedy: "acknowledged", Fixed: true})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refuseHeld fails if partitions are held: once a loss is acknowledged the problem would seem to be
// over, and they go on refusing publishes.
func refuseHeld(ctx context.Context, partitions rdb.Partitions) error {
	var held []string
	for _, p := range partitions {
		is, err := p.IsHeld(ctx)
		if err != nil {
			return err
		}
		if is {
			held = append(held, strconv.Itoa(int(p.Number())))
		}
	}
	if held == nil {
		return nil
	}
	return fmt.Errorf("the loss was not acknowledged, because partitions are held, or came back without their keys: %s; "+
		"run `rtm cluster release %s` first, then `rtm doctor --fix`, then this again", strings.Join(held, ", "), strings.Join(held, " "))
}

func (d *examination) observe(f doctor.Finding) {
	state, does := "repaired", f.Remedy
	switch {
	case f.Fixed:
		d.repaired++
	case f.Remedy != "":
		state, does = "repairable", "to be "+f.Remedy
		d.repairable++
	default:
		state, does = "skipped", "skipped"
		d.skipped++
	}
	if d.json {
		writeJSONLine(d.out, finding{f.Partition, f.Key, f.Problem, f.Remedy, state})
		return
	}
	if f.Partition != "" {
		fmt.Fprint(d.out, f.Partition, " ")
	}
	fmt.Fprintf(d.out, "%s: %s [%s]\n", printable(f.Key), printable(f.Problem), does)
}

func (d *examination) sumUp(s doctor.Stats, took time.Duration) {
	if d.json {
		writeJSONLine(d.out, map[string]summary{"summary": {d.repaired, d.repairable, d.skipped, s.Unchecked, s.Risks, s.Batches, s.Jobs, s.Subscribers, s.Topics, s.Failing, took.Seconds()}})
		return
	}
	for _, what := range s.Unchecked {
		fmt.Fprintf(d.out, "%s: not checked, too busy\n", printable(what))
	}
	if len(s.Unchecked) > 0 {
		fmt.Fprintln(d.out, "To have that checked, stop the workers of the bus, and run this again.")
	}
	fmt.Fprintf(d.out, "Read %d batches, %d jobs, %d subscribers and %d topics in %v: ",
		s.Batches, s.Jobs, s.Subscribers, s.Topics, took.Round(time.Millisecond))
	switch {
	case d.repaired+d.repairable+d.skipped > 0:
		fmt.Fprintf(d.out, "%d repaired, %d that --fix repairs, %d skipped.\n", d.repaired, d.repairable, d.skipped)
	case len(s.Unchecked) > 0:
		fmt.Fprintln(d.out, "all that was checked is in order.")
	default:
		fmt.Fprintln(d.out, "all is in order.")
	}
	for _, risk := range s.Risks {
		fmt.Fprintln(d.out, "Warning:", printable(risk))
	}
	switch s.Failing {
	case 0:
	case 1:
		fmt.Fprintln(d.out, "1 subscriber is failing; `rtm top` shows which.")
	default:
		fmt.Fprintf(d.out, "%d subscribers are failing; `rtm top` shows which.\n", s.Failing)
	}
}

// printable is a text that may hold anything, quoted if a terminal would not show all of it on one
// line.
func printable(text string) string {
	for _, r := range text {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			return strconv.Quote(text)
		}
	}
	return text
}
