package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"routemaster/client"
	"routemaster/client/machines"
	"routemaster/client/subscriber"
	"routemaster/internal/bus"
	internal "routemaster/internal/machines"
	"routemaster/internal/terminal"
)

// These are the arguments of commands about labels.
var (
	aLabel        = []kind{machine, label}
	aLabelAndMore = []kind{machine, label, anything}
)

var labelRows = row{
	use: "label", short: "look at the labels of state machines, and change them",
	example: "  rtm label show drip_feed user-7 -b @production\n  rtm label set drip_feed user-7 plan=pro -b @production",
	rows: []row{
		{
			use: "show MACHINE LABEL", short: "show a label: where it is, and why it waits there", kinds: aLabel,
			long: `Show where a label is, since when, and why: the condition of its gate with the value of each part, and what will have it
evaluated, first what comes next; or how its action has failed. As a table on a terminal, else a line for each, with name
and value separated by a tab. What depends on a feed is unknown: rtm label evaluate --dry-run asks it. If no worker of the
bus moves labels, a line on stderr says so.`,
			example: "  rtm label show drip_feed user-7 -b @production\n  rtm label show drip_feed user-7 --json -b @production",
			json:    jsonObject,
			run: func(c *call) error {
				status, err := c.machine().Label(c.Context(), c.args[1])
				if err != nil {
					return err
				}
				sayThatNoneMoves(c, status)
				return showLabel(c, status)
			},
		},
		{
			use: "list MACHINE", short: "list the labels of a state machine, with their states", kinds: aLabel,
			long: `List labels of a machine in the order of the bytes of their names. At most --limit are printed. If there are more, a line
on stderr says which --after goes on with them.

Without a terminal each label is a line with its name and its state, separated by a tab.`,
			example: "  rtm label list drip_feed -b @production\n  rtm label list drip_feed --state send_welcome --errored -b @production\n" +
				"  rtm label list drip_feed --limit 1000000 --json -b @production",
			flags: func(f *pflag.FlagSet) {
				f.String("state", "", "only labels in this `STATE`")
				f.Bool("errored", false, "only labels whose action has failed for good")
				f.Int("limit", 100, "print `COUNT` labels at most")
				f.String("after", "", "go on behind this `LABEL`")
			},
			json: jsonArray,
			run:  listLabels,
		},
		{
			use: "add MACHINE LABEL [PATH=VALUE...]", short: "make a label, with its metadata", kinds: aLabelAndMore,
			long: "Make a label, which begins in the first state of the machine. It is an error if there is one of the name.\n\n" + metadataHelp,
			example: "  rtm label add drip_feed user-7 plan=free -b @production\n" +
				"  rtm label add drip_feed user-7 --data @user.json -b @production",
			flags: addMetadataFlags,
			json:  jsonLabel,
			run: changeLabel(func(c *call, m *machines.Machine, name string, object internal.Object) (machines.Label, error) {
				return m.Create(c.Context(), name, object)
			}),
		},
		{
			use: "set MACHINE LABEL PATH=VALUE...", short: "merge metadata into a label, which may move it", kinds: aLabelAndMore,
			long: "Merge metadata into a label, and evaluate its gate if that has a trigger for it: objects are merged,\n" +
				"anything else replaces what is there, and null removes it.\n\n" + metadataHelp,
			example: "  rtm label set drip_feed user-7 plan=pro address.city=null -b @production\n" +
				"  jq .user event.json | rtm label set drip_feed user-7 --create --data - -b @production",
			flags: func(f *pflag.FlagSet) {
				addMetadataFlags(f)
				f.Bool("create", false, "make the label if there is none")
			},
			json: jsonLabel,
			run:  changeLabel(mergeMetadata),
		},
		{
			use: "del MACHINE LABEL [LABEL...]", short: "delete labels", kinds: aLabel,
			long: `Delete labels with their metadata. It is no error if there is none. The name of a label that was deleted cannot be used
for 24 hours, in which rtm label history still shows its moves.`,
			example: "  rtm label del drip_feed user-7 -b @production",
			run:     each(1, func(c *call, label string) (string, error) { return "", c.machine().Delete(c.Context(), label) }),
		},
		{
			use: "retry MACHINE LABEL [LABEL...]", short: "have errored labels try their action again", kinds: aLabel,
			long: `Have errored labels try their action again, and say where each is then. It ends with the first that is not errored.
rtm label list MACHINE --errored has those that are.`,
			example: "  rtm label retry drip_feed user-7 -b @production\n" +
				"  rtm label list drip_feed --errored -b @production | cut -f 1 | xargs -d '\\n' rtm label retry drip_feed -b @production",
			flags: addWaitFlag,
			run: each(1, func(c *call, label string) (string, error) {
				m, err := waiting(c)
				if err != nil {
					return "", err
				}
				status, err := m.Retry(c.Context(), label)
				line := fmt.Sprintf("retried %s: it is in %s", label, status.State)
				if status.Errored != nil {
					line += ", errored: " + status.Errored.Reason
				}
				return line, err
			}),
		},
		{
			use: "evaluate MACHINE LABEL", short: "evaluate the gate of a label now, or say what would happen", kinds: aLabel,
			long: `Evaluate the gate of a label now, which may move it, and show the label then as rtm label show does. With --dry-run show
what would happen, and change nothing: the value of the condition and of its parts, and where the label would go. Feeds are
asked.`,
			example: "  rtm label evaluate drip_feed user-7 --dry-run -b @production\n  rtm label evaluate drip_feed user-7 -b @production",
			flags: func(f *pflag.FlagSet) {
				addWaitFlag(f)
				f.Bool("dry-run", false, "only say what would happen")
			},
			json: jsonObject,
			run:  evaluateLabel,
		},
		{
			use: "history MACHINE LABEL", short: "list the moves of a label, and why it has moved", kinds: aLabel,
			long: `List the last 100 moves of a label, the latest first; also of one that was deleted, for 24 hours. If there were more, a
line on stderr says how many. TRIGGER is the cause of the evaluation, STATUS the status of the answer to the action's webhook.
--json also has the values of the condition's parts.

Without a terminal each move is a line with its time, the states that it was from and to (empty for the creation and the
deletion), the trigger and the status, separated by tabs.`,
			example: "  rtm label history drip_feed user-7 -b @production\n  rtm label history drip_feed user-7 --json -b @production",
			json:    jsonArray,
			run:     listMoves,
		},
	},
}

// addWaitFlag adds the flag that says how long a change waits for its label to come to rest.
func addWaitFlag(f *pflag.FlagSet) {
	f.Duration("wait", time.Second, "wait so long for the label to come to rest, 0s to 10s")
}

// waiting is the machine of a command, which waits as the flag says.
func waiting(c *call) (*machines.Machine, error) {
	wait := c.duration("wait")
	if wait < 0 || wait > 10*time.Second || wait%time.Millisecond != 0 {
		return nil, wrongFlag("wait", "0s to 10s, in whole ms")
	}
	return c.machine().Waiting(subscriber.Milliseconds(wait.Milliseconds())), nil
}

func listLabels(c *call) error {
	limit := c.int("limit")
	if limit < 1 {
		return wrongFlag("limit", "1 or more")
	}
	var found []machines.Listed
	more := false
	for label, err := range c.machine().Labels(c.Context(), machines.Filter{State: c.text("state"), Errored: c.is("errored")}, c.text("after")) {
		if err != nil {
			return err
		}
		if more = len(found) == limit; more {
			break
		}
		found = append(found, label)
	}
	err := printList(c, found, "There are no such labels.", "LABEL|STATE", func(l machines.Listed) []any { return []any{l.Name, l.State} })
	if more {
		c.note("there are more labels; go on with --after %s", strconv.Quote(terminal.Escape(found[len(found)-1].Name)))
	}
	return err
}

func listMoves(c *call) error {
	history, err := c.machine().History(c.Context(), c.args[1])
	if err != nil {
		return err
	}
	err = printList(c, history.Moves, "It has not moved.", "AT|FROM|TO|TRIGGER|STATUS", func(m machines.Move) []any {
		status := ""
		if m.Why.Status != 0 {
			status = strconv.Itoa(m.Why.Status)
		}
		at := cell{clock(m.At.Time), m.At.Format(time.RFC3339Nano)}
		return []any{at, dashed(orEmpty(m.From)), dashed(orEmpty(m.To)), dashed(m.Why.Trigger), dashed(status)}
	})
	if shown := int64(len(history.Moves)); shown < history.Count {
		c.note("these are the last %d of %d moves; older ones are not kept", shown, history.Count)
	}
	return err
}

func orEmpty(state *string) string {
	if state == nil {
		return ""
	}
	return *state
}

func evaluateLabel(c *call) error {
	m, err := waiting(c)
	if err != nil {
		return err
	}
	if !c.is("dry-run") {
		status, err := m.Evaluate(c.Context(), c.args[1])
		if err != nil {
			return err
		}
		return showLabel(c, status)
	}
	would, err := m.DryRun(c.Context(), c.args[1])
	if err != nil {
		return err
	}
	to := cmp.Or(would.To, "nowhere: it would stay")
	rows := append([][]string{{"state", would.State}}, explanationRows(would.Explanation)...)
	return c.show(would, append(rows, []string{"would move to", to}))
}

const metadataHelp = `VALUE is JSON, or else a string as it is: 7 is a number, and '"7"' a string. Dots in a PATH are for objects in objects.
--data is for names with dots, and for all at once.

The state that the label has then is printed, when it has come to rest or --wait is over.`

const jsonLabel = "print the label as a JSON object"

// addMetadataFlags adds the flags for the metadata to send.
func addMetadataFlags(f *pflag.FlagSet) {
	addWaitFlag(f)
	f.String("data", "", "metadata, a `JSON` object; @FILE reads it from a file, - from the standard input")
}

// changeLabel runs a change by the metadata of the command, and prints the state of the label then.
func changeLabel(do func(c *call, m *machines.Machine, name string, object internal.Object) (machines.Label, error)) func(*call) error {
	return func(c *call) error {
		m, err := waiting(c)
		if err != nil {
			return err
		}
		object, err := readMetadata(c)
		if err != nil {
			return err
		}
		label, err := do(c, m, c.args[1], object)
		return c.sayOr(label.State, label, err)
	}
}

// readMetadata reads the metadata of the arguments, which win, and of --data. Errors are
// [usageError]s.
func readMetadata(c *call) (object internal.Object, err error) {
	text, err := readFlag(c, "data")
	if err != nil {
		return nil, err
	}
	object = internal.Object{}
	if text != nil {
		if object, err = internal.ParseObject(text); err != nil {
			return nil, usageError{fmt.Errorf("--data %s", detailOf(err))}
		}
	}
	for _, arg := range c.args[2:] {
		if object, err = assign(object, arg); err != nil {
			return nil, err
		}
	}
	packed, err := object.Pack()
	if err == nil && bus.IsTooDeep(packed) {
		err = bus.Invalidf("", "the metadata %s", bus.TooDeep)
	}
	if err != nil {
		return nil, usageError{errors.New(detailOf(err))}
	}
	return object, nil
}

// mergeMetadata merges metadata into a label's, or with --create makes the label with it.
func mergeMetadata(c *call, m *machines.Machine, name string, object internal.Object) (machines.Label, error) {
	create := c.is("create")
	if len(object) == 0 && !create {
		return machines.Label{}, errNoChange
	}
	label, err := m.Merge(c.Context(), name, object)
	if !create || !isNotFound(err) {
		return label, err
	}
	label, err = m.Create(c.Context(), name, internal.Object{}.Merge(object, false))
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusConflict { // another request made it first
		return m.Merge(c.Context(), name, object)
	}
	return label, err
}

// errNoChange is the error of a change that changes nothing.
var errNoChange = usageError{errors.New("nothing to merge; give PATH=VALUE, such as plan=pro, or --data")}

// assign reads path=value into an object: the value is JSON, or else a string as it is.
func assign(object internal.Object, text string) (internal.Object, error) {
	path, value, found := strings.Cut(text, "=")
	if !found || path == "" || strings.HasPrefix(path, ".") || strings.HasSuffix(path, ".") || strings.Contains(path, "..") {
		return nil, usageError{fmt.Errorf("%q is not PATH=VALUE, such as plan=pro or address.city=null", text)}
	}
	names := strings.Split(path, ".")
	wrapped, err := internal.ParseObject([]byte(`{"value":` + value + `}`))
	if err != nil && strings.ContainsAny(value[:min(1, len(value))], `{["`) {
		return nil, usageError{fmt.Errorf("%s: the value is not JSON", text)}
	}
	leaf := any(value)
	if err == nil && len(wrapped) == 1 {
		leaf = wrapped["value"]
	}
	for i := len(names) - 1; i >= 0; i-- {
		leaf = map[string]any{names[i]: leaf}
	}
	return object.Merge(leaf.(map[string]any), true), nil
}
