package condition

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Environment holds the inputs of an evaluation.
type Environment struct {
	// Metadata is decoded JSON, with numbers as json.Number, which keeps them exact, or float64.
	// Without it, all paths into it are null.
	Metadata any
	// Feed returns the decoded answer of a feed, or ErrUnknown if it is not to be asked; nil asks
	// none. It is called each time that an evaluation comes to the feed: it has to keep the answer if
	// one evaluation is to be one request.
	Feed func(name string) (value any, err error)
	// EnteredState is when the label entered its state.
	EnteredState time.Time
	// PreviousState is the state before that, "" if there was none.
	PreviousState string
	// Now is the time of the evaluation. Its location is the zone of system.time.
	Now time.Time
	// Due, if set, is the time that system.time takes its time of day from, in place of Now.
	Due time.Time
}

// Path leads to a value: metadata.a.b has the names metadata, a and b, which must not be changed.
// Its position is that in the source.
type Path struct {
	Position
	Names  []string
	source string
}

// String joins the names with dots, as the source has them.
func (p Path) String() string { return strings.Join(p.Names, ".") }

// ParsePath reads names that are joined with dots. Whether they lead anywhere is for
// [Path.Validate]: the path of a trigger begins within the metadata. It fails with a
// [*SyntaxError].
func ParsePath(text string) (Path, error) {
	if failure := readable(text); failure != nil {
		return Path{}, failure
	}
	p, failure := parsePath(text, start, text)
	if failure != nil {
		return Path{}, failure
	}
	return p, nil
}

// parsePath reads the path at a position of a source.
func parsePath(text string, at Position, source string) (Path, *SyntaxError) {
	p := Path{Position: at, Names: strings.Split(text, "."), source: source}
	if slices.Contains(p.Names, "") {
		return Path{}, p.refuse(fmt.Sprintf("%q is no path: names joined with dots, as in metadata.user.age", text))
	}
	for i, r := range text {
		if r != '.' && !inName(r) {
			at.Offset += i
			at.Column += utf8.RuneCountInString(text[:i])
			reason := fmt.Sprintf("%q cannot be in a name, which has letters, digits, _ and -", r)
			return Path{}, &SyntaxError{at, utf8.RuneLen(r), source, reason}
		}
	}
	return p, nil
}

func inName(r rune) bool {
	return r == '_' || r == '-' || unicode.In(r, unicode.L, unicode.M, unicode.N)
}

// contexts are where a path begins, and what may follow; nil is any name.
var contexts = map[string][]string{
	"metadata": nil,
	"feeds":    nil,
	"history":  {"entered_state", "previous_state"},
	"system":   {"entered_state", "now", "time"},
}

// Validate reports, as a [*SyntaxError], a path that leads nowhere: there is no such context, or it
// has no such name. Whether there is a feed of this name is not known here.
func (p Path) Validate() error {
	context := p.Names[0]
	names, ok := contexts[context]
	switch {
	case !ok:
		return p.refuse(fmt.Sprintf("there is no %s: a path begins with metadata, feeds, history or system, "+
			"and a string stands in double quotes", context))
	case context == "metadata":
		return nil
	case context == "feeds" && len(p.Names) == 1:
		return p.refuse("feeds is not a value: name the feed, as in feeds.NAME")
	case context == "feeds":
		return nil
	case len(p.Names) == 1 || !slices.Contains(names, p.Names[1]):
		return p.refuse(fmt.Sprintf("there is no %s: %s has %s", p, context, strings.Join(names, ", ")))
	case len(p.Names) > 2:
		return p.refuse(fmt.Sprintf("there is no %s: nothing is below %s.%s", p, context, p.Names[1]))
	default:
		return nil
	}
}

func (p Path) refuse(reason string) *SyntaxError {
	p = p.placed()
	return &SyntaxError{p.Position, len(p.String()), p.source, reason}
}

// placed is the path with a source: its own text, if it was not parsed.
func (p Path) placed() Path {
	if p.source == "" {
		p.Position, p.source = start, p.String()
	}
	return p
}

// Lookup returns the value that a path leads to: decoded JSON, a [time.Time] or a [Clock]. It fails
// with an [*EvaluationError] if a step leads into a value that is not an object, or if the feed has
// failed, and with a [*SyntaxError] if the path is not valid.
func (p Path) Lookup(env *Environment) (any, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	switch p.Names[0] {
	case "metadata":
		if env.Metadata == nil {
			return nil, nil
		}
		return p.follow(env.Metadata, 1)
	case "feeds":
		v, err := env.feed(p.Names[1])
		switch {
		case errors.Is(err, ErrUnknown):
			return nil, p.fail("the feed "+p.Names[1]+" was not asked", err)
		case err != nil:
			return nil, p.fail(fmt.Sprintf("the feed %s failed (%v)", p.Names[1], err), err)
		}
		return p.follow(v, 2)
	}
	switch p.Names[1] {
	case "entered_state":
		return env.EnteredState, nil
	case "now":
		return env.Now, nil
	case "time":
		if !env.Due.IsZero() {
			return ClockOf(env.Due), nil
		}
		return ClockOf(env.Now), nil
	}
	if env.PreviousState == "" {
		return nil, nil
	}
	return env.PreviousState, nil
}

// feed asks for a feed.
func (env *Environment) feed(name string) (any, error) {
	if env.Feed == nil {
		return nil, ErrUnknown
	}
	return env.Feed(name)
}

// follow goes on from a value, which the names before step lead to.
func (p Path) follow(v any, step int) (any, error) {
	for ; step < len(p.Names); step++ {
		object, ok := v.(map[string]any)
		if !ok {
			reason := fmt.Sprintf("%s is %s, not an object", strings.Join(p.Names[:step], "."), Kind(v))
			return nil, p.fail(reason, nil)
		}
		if v, ok = object[p.Names[step]]; !ok {
			return nil, nil
		}
	}
	return v, nil
}

func (p Path) fail(reason string, err error) error {
	p = p.placed()
	return &EvaluationError{p.Position, len(p.String()), p.source, reason, err}
}
