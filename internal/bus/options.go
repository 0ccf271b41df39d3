package bus

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Options are a subscriber's settings beyond its [Subscription]. The zero value has all defaults.
type Options struct {
	// MaxBytes is the most bytes of a delivery's body, unless one event has more; 0 is no limit.
	MaxBytes int
	// MaxRequestsPerMinute and MaxEventsPerMinute are the pace of the deliveries; 0 is no limit.
	MaxRequestsPerMinute, MaxEventsPerMinute int
	// Lanes is how many queues a subscriber has, each delivered in order; 0 is one. An event's lane
	// goes by its value at OrderKey, a JSON pointer into the event as delivered; empty is
	// [DefaultOrderKey].
	Lanes    int
	OrderKey string
	// StrictOrder has a batch that failed keep its turn, so that none passes it.
	StrictOrder bool
	// Partial makes a 207 count as a receipt for each event.
	Partial bool
	// KeepAge and KeepEvents bound the queue: batches older than KeepAge, and the oldest events while
	// there are more than KeepEvents, are dropped. 0 is no limit.
	KeepAge    time.Duration
	KeepEvents int
	// GapNotices reports lost events to the subscriber, in its queue.
	GapNotices bool
	// DeadLetters says when batches become dead letters. Without it batches are tried for ever.
	DeadLetters *DeadLetters
	LogAttempts LogAttempts
}

// DeadLetters says when a batch becomes a dead letter, and how many dead letters are kept.
type DeadLetters struct {
	// Attempts is how often a batch may be refused, Age how old it may get; 0 is no limit.
	Attempts int
	Age      time.Duration
	// KeepEvents, KeepBytes (of packed events) and KeepAge limit the dead letters of a subscriber.
	// Beyond them the oldest go.
	KeepEvents, KeepBytes int
	KeepAge               time.Duration
}

// Defaults of [DeadLetters].
const (
	DefaultKeepEvents = 10_000
	DefaultKeepBytes  = 10_000_000
	DefaultKeepAge    = 7 * day
)

const day = 24 * time.Hour

// LogAttempts says which attempts are recorded.
type LogAttempts int

// The values of [LogAttempts].
const (
	LogFailures LogAttempts = iota
	LogNone
	LogAll
)

// logAttempts are the words for [LogAttempts].
var logAttempts = []string{LogFailures: "failures", LogNone: "none", LogAll: "all"}

// Forever is until when a subscriber is paused that does not say: the end of the year 9999.
var Forever = time.UnixMilli(253402300799999)

// option is an option of a subscriber, or a member of one.
type option struct {
	name  string
	value optionValue
}

// optionValue reads and writes a field of [Options] as JSON.
type optionValue interface {
	// read sets the field. The text is valid JSON, and is not null. It fails with an [Invalid].
	read(text string) error
	// json is the field's value in canonical JSON, "null" if it has none.
	json() string
}

// table lists all options. Each value is of a field of o.
func (o *Options) table() []option {
	return []option{
		{"max_bytes", count{&o.MaxBytes, 1024, 8 << 20}},
		{"max_requests_per_minute", count{&o.MaxRequestsPerMinute, 1, 6_000_000}},
		{"max_events_per_minute", count{&o.MaxEventsPerMinute, 1, 600_000_000}},
		{"lanes", lanes{&o.Lanes}},
		{"order_key", orderKey{&o.OrderKey}},
		{"strict_order", boolean{&o.StrictOrder}},
		{"partial", boolean{&o.Partial}},
		{"keep_age", period{&o.KeepAge, time.Minute, 30 * day}},
		{"keep_events", count{&o.KeepEvents, 1, 1_000_000_000}},
		{"gap_notices", boolean{&o.GapNotices}},
		{"dead_letters", deadLetters{&o.DeadLetters}},
		{"log_attempts", &o.LogAttempts},
	}
}

func (d *DeadLetters) table() []option {
	return []option{
		{"attempts", count{&d.Attempts, 1, 1000}},
		{"age", period{&d.Age, time.Minute, 30 * day}},
		{"keep_events", count{&d.KeepEvents, 1, 1_000_000}},
		{"keep_bytes", count{&d.KeepBytes, 1000, 1_000_000_000}},
		{"keep_age", period{&d.KeepAge, time.Minute, 30 * day}},
	}
}

// OptionNames lists the names of all options, in the order in which they are shown.
func OptionNames() []string { return names(new(Options).table()) }

// JSON returns an option's value, also if it is the default; "null" stands for none.
func (o Options) JSON(name string) string {
	if option := find(o.table(), name); option != nil {
		return option.value.json()
	}
	return "null"
}

// ParseOption reads the JSON value of an option strictly. It returns the value in canonical JSON,
// which is how it is stored, or "" if it is the default, as null is. It fails with an [Invalid]
// whose pointer begins with the option's name.
func ParseOption(name, text string) (canonical string, err error) {
	var o, defaults Options
	if err := read(o.table(), name, text); err != nil {
		return "", err
	}
	if canonical := o.JSON(name); canonical != defaults.JSON(name) {
		return canonical, nil
	}
	return "", nil
}

// ParseOptions reads options from the JSON of each that is not its default. It ignores unknown
// names. An option that cannot be read has its default; the error is the first such option's.
func ParseOptions(stored map[string]string) (o Options, err error) {
	for _, name := range OptionNames() {
		text, set := stored[name]
		if !set {
			continue
		}
		if wrong := read(o.table(), name, text); wrong != nil && err == nil {
			err = wrong
		}
	}
	return o, err
}

// read sets one of some options. Null leaves it as it is.
func read(options []option, name, text string) error {
	option := find(options, name)
	switch text = strings.TrimSpace(text); {
	case option == nil:
		return Invalidf(pointerTo(name), "is not known here; known are %s", strings.Join(names(options), ", "))
	case !json.Valid([]byte(text)):
		return Invalidf(pointerTo(name), "must be JSON")
	case text == "null":
		return nil
	}
	return At(pointerTo(name), option.value.read(text))
}

func find(options []option, name string) *option {
	i := slices.IndexFunc(options, func(o option) bool { return o.name == name })
	if i < 0 {
		return nil
	}
	return &options[i]
}

func names(options []option) []string {
	names := make([]string, len(options))
	for i, option := range options {
		names[i] = option.name
	}
	return names
}

// pointerTo is the JSON pointer (RFC 6901) to a member.
func pointerTo(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// count is an integer; 0 is none.
type count struct {
	field    *int
	min, max int
}

func (c count) read(text string) (err error) {
	*c.field, err = integer(text, c.min, c.max)
	return err
}

func (c count) json() string {
	if *c.field == 0 {
		return "null"
	}
	return strconv.Itoa(*c.field)
}

// period is a duration in ms; 0 is none.
type period struct {
	field    *time.Duration
	min, max time.Duration
}

func (p period) read(text string) error {
	ms, err := integer(text, int(p.min.Milliseconds()), int(p.max.Milliseconds()))
	*p.field = time.Duration(ms) * time.Millisecond
	return err
}

func (p period) json() string {
	ms := int(p.field.Milliseconds())
	return count{field: &ms}.json()
}

// integer reads an integer of a range, without a fraction or an exponent. It is 0 with an error.
func integer(text string, atLeast, atMost int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < atLeast || n > atMost {
		return 0, Invalidf("", "must be an integer from %d to %d, or null", atLeast, atMost)
	}
	return n, nil
}

// Limits of lanes and of their order key, in characters; and the default order key.
const (
	MaxLanes        = 64
	maxOrderKey     = 128
	DefaultOrderKey = "/url"
)

// lanes is a number of lanes, which is never none.
type lanes struct{ field *int }

func (l lanes) read(text string) error { return count{l.field, 1, MaxLanes}.read(text) }

func (l lanes) json() string { return strconv.Itoa(max(*l.field, 1)) }

// orderKey is a JSON pointer.
type orderKey struct{ field *string }

func (k orderKey) read(text string) error {
	var pointer string
	if err := json.Unmarshal([]byte(text), &pointer); err != nil || !isPointer(pointer) {
		return Invalidf("", "must be a JSON pointer into an event, such as /data/account, of at most %d characters, or null", maxOrderKey)
	}
	*k.field = pointer
	return nil
}

func (k orderKey) json() string {
	text, _ := json.Marshal(cmp.Or(*k.field, DefaultOrderKey)) // of a string: no error
	return string(text)
}

// isPointer reports whether a text is a JSON pointer (RFC 6901) to a member.
func isPointer(text string) bool {
	escaped := strings.NewReplacer("~0", "", "~1", "").Replace(text)
	return strings.HasPrefix(text, "/") && !strings.Contains(escaped, "~") && utf8.RuneCountInString(text) <= maxOrderKey
}

type boolean struct{ field *bool }

func (b boolean) read(text string) error {
	if text != "true" && text != "false" {
		return Invalidf("", "must be true, false or null")
	}
	*b.field = text == "true"
	return nil
}

func (b boolean) json() string { return strconv.FormatBool(*b.field) }

func (l *LogAttempts) read(text string) error {
	var word string
	known := -1
	if json.Unmarshal([]byte(text), &word) == nil {
		known = slices.Index(logAttempts, word)
	}
	if known < 0 {
		return Invalidf("", "must be one of %s, or null", Words(logAttempts))
	}
	*l = LogAttempts(known)
	return nil
}

func (l *LogAttempts) json() string { return strconv.Quote(logAttempts[*l]) }

type deadLetters struct{ field **DeadLetters }

// read reads an object, whose members may be left out. Package json would accept duplicate names,
// and names in any case.
func (d deadLetters) read(text string) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return Invalidf("", "must be an object or null")
	}
	letters := &DeadLetters{KeepEvents: DefaultKeepEvents, KeepBytes: DefaultKeepBytes, KeepAge: DefaultKeepAge}
	seen := map[string]bool{}
	for decoder.More() {
		var value json.RawMessage
		token, err := decoder.Token()
		if err == nil {
			err = decoder.Decode(&value)
		}
		if err != nil {
			return Invalidf("", "must be JSON")
		}
		name, _ := token.(string)
		if seen[name] {
			return Invalidf(pointerTo(name), "is there twice")
		}
		seen[name] = true
		if err := read(letters.table(), name, string(value)); err != nil {
			return err
		}
	}
	*d.field = letters
	return nil
}

// json leaves out members without a value.
func (d deadLetters) json() string {
	if *d.field == nil {
		return "null"
	}
	var text bytes.Buffer
	for _, member := range (*d.field).table() {
		if value := member.value.json(); value != "null" {
			text.WriteString(`,"` + member.name + `":` + value)
		}
	}
	return "{" + strings.TrimPrefix(text.String(), ",") + "}"
}
