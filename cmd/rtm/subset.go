package main

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// off is the value of a flag that takes an option back.
const off = "off"

var subSetRow = row{
	use: "set", short: "set options of your subscription", ofSubscriber: true,
	long: `Set options of a subscriber. Those that are not given stay as they are; off, or =false, makes an option its default.
They hold from the next delivery on, also for what is queued.

With --dead-letters the bus gives up on events: on those that the receiver has refused so many times (attempts), and on
those older than an age. They become dead letters. Without it they are tried until they succeed.`,
	example: "  rtm sub set --lanes 8 --order-key /data/account -b @production\n" +
		"  rtm sub set --max-per-minute 600 --max-bytes 1MB -b @production\n" +
		"  rtm sub set --dead-letters attempts=20,age=72h --strict -b @production\n" +
		"  rtm sub set --max-bytes off --strict=false --dead-letters off -b @production",
	flags: addOptionFlags,
	run: func(c *call) error {
		fields, err := optionFields(c.Flags())
		if err != nil {
			return err
		}
		return c.subscriber.Patch(c.Context(), fields)
	},
}

// optionFlags are the flags of rtm sub set, each with its option, the function that reads its
// value, and its help.
var optionFlags = []struct {
	flag, option string
	read         func(text string) (any, error)
	right, help  string
}{
	{"max-bytes", "max_bytes", readSize, "bytes, such as 65536, 64KB or 1MB, or off", "limit of a delivery's body, such as 64KB or 1MB; or off"},
	{"max-per-minute", "max_requests_per_minute", readCount, "an integer or off", "limit of deliveries a minute; or off"},
	{"max-events-per-minute", "max_events_per_minute", readCount, "an integer or off", "limit of events a minute; or off"},
	{"lanes", "lanes", readCount, "an integer or off", "deliver up to so many batches side by side, the events of one key in order; or off"},
	{"order-key", "order_key", readWord, "a JSON pointer such as /data/account, or off", "JSON pointer to the key in an event, such as /data/account; or off for /url"},
	{"strict", "strict_order", nil, "", "a batch that failed holds up those behind it, of its lane"},
	{"partial", "partial", nil, "", "a 207 is a receipt that says what became of each event"},
	{"keep-age", "keep_age", readPeriod, "a duration such as 72h, or off", "drop batches that are older than this, also during a pause, such as 72h; or off"},
	{"keep-events", "keep_events", readCount, "an integer or off", "drop the oldest events beyond this number; or off"},
	{"gap-notices", "gap_notices", nil, "", "have an event of the type gap tell of events that are lost"},
	{"dead-letters", "dead_letters", readDeadLetters, "like attempts=20,age=72h, or off",
		"when to give up: `LIMITS` such as attempts=20,age=72h, each optional, also keep-events, keep-bytes, keep-age; or off"},
	{"log-attempts", "log_attempts", readWord, "failures, none or all", "which attempts the bus records: failures, none or all"},
}

// addOptionFlags adds the flags. An option without a function that reads it is on or off.
func addOptionFlags(f *pflag.FlagSet) {
	for _, o := range optionFlags {
		if o.read == nil {
			f.Bool(o.flag, false, o.help)
		} else {
			f.String(o.flag, "", o.help)
		}
		setMember(f, o.flag, o.option)
	}
}

// optionFields are the options that the flags set; a nil one is to have its default.
func optionFields(flags *pflag.FlagSet) (map[string]any, error) {
	fields := map[string]any{}
	for _, o := range optionFlags {
		switch text := flags.Lookup(o.flag).Value.String(); {
		case !flags.Changed(o.flag):
		case o.read == nil:
			fields[o.option] = text == "true"
		case text == off:
			fields[o.option] = nil
		default:
			value, err := o.read(text)
			if err != nil {
				return nil, wrongFlag(o.flag, o.right)
			}
			fields[o.option] = value
		}
	}
	if len(fields) == 0 {
		return nil, usageError{errors.New("no option is given")}
	}
	return fields, nil
}

func readCount(text string) (any, error) { return strconv.Atoi(text) }
func readWord(text string) (any, error)  { return text, nil }

// readPeriod reads a duration, which the bus takes in ms.
func readPeriod(text string) (any, error) {
	period, err := time.ParseDuration(text)
	return period.Milliseconds(), err
}

// readSize reads a number of bytes. Units are decimal.
func readSize(text string) (any, error) {
	text = strings.TrimSuffix(strings.ToUpper(text), "B")
	factor := 1
	for unit, value := range map[string]int{"K": 1000, "M": 1_000_000} {
		if digits, ok := strings.CutSuffix(text, unit); ok {
			text, factor = digits, value
		}
	}
	n, err := strconv.Atoi(text)
	if err == nil && n > math.MaxInt32 {
		err = strconv.ErrRange
	}
	return n * factor, err
}

// readDeadLetters reads when the bus is to give up on events.
func readDeadLetters(text string) (any, error) {
	fields := map[string]any{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		var err error
		switch name {
		case "attempts", "keep-events":
			fields[strings.ReplaceAll(name, "-", "_")], err = readCount(value)
		case "keep-bytes":
			fields["keep_bytes"], err = readSize(value)
		case "age", "keep-age":
			fields[strings.ReplaceAll(name, "-", "_")], err = readPeriod(value)
		default:
			err = errors.New("no such part")
		}
		if err != nil {
			return nil, err
		}
	}
	return fields, nil
}
