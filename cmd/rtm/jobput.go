package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client/jobs"
	"routemaster/internal/terminal"
)

// putFlags say what job is enqueued.
type putFlags struct {
	data, runAfter, expires string
	asJSON                  bool
}

func newJobPutCommand(bus *busFlags) *cobra.Command {
	var f putFlags
	command := &cobra.Command{
		Use:   "put NAME [ID]",
		Short: "enqueue a job of a type",
		Long: `Enqueue a job of the type NAME, and print its id. An ID is job_ and a UUID; without one it is random. If there is a job of
that ID which has not ended, nothing is enqueued: so a command with an ID can be run again. It is stored once, even if
the request has to be sent again.`,
		Example: "  rtm job put invoice-shipments --data '{\"shipmentId\":\"shp_123\"}' -b @production\n" +
			"  rtm job put invoice-shipments job_282227eb-3c76-4ef7-af7e-25dff933077f --data @shipment.json --run-after 10m -b @production\n" +
			"  jq .shipment order.json | rtm job put invoice-shipments --data - --expires-at 2027-01-31T12:00:00Z -b @production",
		Args:              jobTypeArgs(1, 2, 1),
		ValidArgsFunction: bus.completeJobTypes,
		RunE: func(cmd *cobra.Command, args []string) error {
			job, err := f.job(cmd, args, time.Now())
			if err != nil {
				return err
			}
			return bus.runJobs(func(cmd *cobra.Command, j *jobs.Jobs, args []string) error {
				queued, err := j.Enqueue(cmd.Context(), args[0], job)
				switch {
				case err != nil:
					return err
				case f.asJSON:
					return writeJSON(cmd.OutOrStdout(), queued)
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), terminal.Escape(queued.ID))
				return err
			})(cmd, args)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.data, "data", "", "the job's data, a `JSON` value; @FILE reads it from a file, - from the standard input (default: null)")
	flags.StringVar(&f.runAfter, "run-after", "", "the earliest `TIME` to run it, in RFC 3339, in ms since the Unix epoch, or 10m for in 10 minutes (default: now)")
	flags.StringVar(&f.expires, "expires-at", "", "the `TIME` after which it is not to be run any more (default: never)")
	flags.BoolVar(&f.asJSON, "json", false, "print the job as a JSON object")
	return command
}

// job reads the arguments and the flags. What is wrong is a [usageError].
func (f *putFlags) job(cmd *cobra.Command, args []string, now time.Time) (job jobs.NewJob, err error) {
	if len(args) > 1 {
		if err := checkJobID(args[1]); err != nil {
			return job, err
		}
		job.ID = args[1]
	}
	for _, flag := range []struct {
		name, text string
		into       *time.Time
	}{{"run-after", f.runAfter, &job.RunAfter}, {"expires-at", f.expires, &job.ExpiresAt}} {
		if !cmd.Flags().Changed(flag.name) {
			continue
		}
		at, ok := futureTime(flag.text, now)
		if !ok || flag.into == &job.ExpiresAt && at.Equal(now) { // which leaves no time to run it
			return job, wrongFlag(flag.name, "like 2027-01-31T12:00:00Z, like 10s, for in 10 seconds, or in ms since the Unix epoch; in a year from 2001 to 9999")
		}
		*flag.into = at
	}
	data, err := readJobData(cmd, "data", f.data)
	if data != nil {
		job.Data = data
	}
	return job, err
}

// futureTime reads a time: in RFC 3339, in ms since the Unix epoch, or how long it is until then.
// Before 2001 it is a number of something else, and after 9999 the bus cannot read it.
func futureTime(text string, now time.Time) (at time.Time, ok bool) {
	if in, err := time.ParseDuration(text); err == nil && in >= 0 {
		return now.Add(in), true
	}
	at, ok = pointInTime(text, now)
	year := at.UTC().Year()
	return at, ok && year >= 2001 && year <= 9999
}

// readJobData reads a flag with JSON, @FILE, or - for the standard input. It is nil if the flag was
// not given. What is wrong is a [usageError].
func readJobData(cmd *cobra.Command, flag, value string) (json.RawMessage, error) {
	text, err := readFlag(cmd, flag, value)
	if text == nil || err != nil {
		return nil, err
	}
	return checkJobData(flag, text)
}

// readFlag reads a flag with a text, @FILE, or - for the standard input. It is nil if the flag was
// not given. What is wrong is a [usageError].
func readFlag(cmd *cobra.Command, flag, value string) (text []byte, err error) {
	if !cmd.Flags().Changed(flag) {
		return nil, nil
	}
	text = []byte(value)
	if name, isFile := strings.CutPrefix(value, "@"); isFile {
		text, err = readFile(name)
	} else if value == "-" {
		text, err = readUpTo(cmd.InOrStdin())
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("--%s: %w", flag, err)}
	}
	return append([]byte{}, text...), nil
}

// maxDataText is how many bytes a file with data may have, spaces included; the bus takes less.
const maxDataText = 1 << 20

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readUpTo(file)
}

// readUpTo reads what has at most [maxDataText].
func readUpTo(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxDataText+1))
	if len(text) > maxDataText {
		return nil, fmt.Errorf("at most %d bytes are read, and there are more", maxDataText)
	}
	return text, err
}
