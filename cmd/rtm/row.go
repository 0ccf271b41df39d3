package main

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"routemaster/client"
	"routemaster/client/jobs"
	"routemaster/client/machines"
	"routemaster/client/subscriber"
	"routemaster/internal/terminal"
)

// row is a command that sends a bus a request, or a few, and prints the answer; or a group of such
// commands. [newFamily] makes commands of rows.
type row struct {
	// use is the name and the arguments. An argument in brackets or with dots may be left out, and one
	// with dots be repeated.
	use, short, long, example string
	// kinds are the kinds of the arguments, by their places. The last one is also the kind of all that
	// follow.
	kinds []kind
	// flags adds the flags. json is the help of --json, empty without that flag. choices are the words
	// that complete a flag.
	flags   func(*pflag.FlagSet)
	json    string
	choices map[string][]string
	// asks is whether the command asks on a terminal, unless --yes is given: see [call.ask].
	asks bool
	// ofSubscriber is whether the command, or all of the group, is about one subscriber.
	ofSubscriber bool
	// run does it. Of a group it is nil, and rows are the commands in it.
	run  func(*call) error
	rows []row
}

const (
	jsonArray  = "print a JSON array"
	jsonObject = "print a JSON object"
)

// newFamily makes the command of a row, with all below it, and the flags that say which bus.
func newFamily(r row) *cobra.Command {
	var bus busFlags
	command := r.command(&bus, nil)
	bus.add(command)
	return command
}

// command makes the command. About says which subscriber is meant, nil if none is.
func (r row) command(bus *busFlags, about *subscriberFlags) *cobra.Command {
	command := &cobra.Command{Use: r.use, Short: r.short, Long: r.long, Example: r.example}
	if r.ofSubscriber {
		about = new(subscriberFlags)
		about.add(command)
	}
	if r.run == nil {
		for _, below := range r.rows {
			command.AddCommand(below.command(bus, about))
		}
		demandCommand(command)
		return command
	}
	r.addFlags(command)
	command.Args = r.checkArguments
	if r.kinds != nil {
		command.ValidArgsFunction = r.complete(bus)
	}
	command.RunE = bus.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		return nameFlag(cmd, about.run(&call{Command: cmd, args: args, bus: c, flags: bus}, r.run))
	})
	return command
}

func (r row) addFlags(command *cobra.Command) {
	flags := command.Flags()
	if r.flags != nil {
		r.flags(flags)
	}
	if r.json != "" {
		flags.Bool("json", false, r.json)
	}
	if r.asks {
		new(consent).add(command)
	}
	for flag, words := range r.choices {
		_ = command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}

// counts returns how many arguments there are at least and at most; the latter is -1 without limit.
func (r row) counts() (minArgs, maxArgs int) {
	for _, word := range strings.Fields(r.use)[1:] {
		repeated := strings.Contains(word, "...")
		if !repeated && word[0] != '[' {
			minArgs++
		}
		if maxArgs++; repeated {
			return minArgs, -1
		}
	}
	return minArgs, maxArgs
}

// kindAt is the kind of the argument at a place, nil if it may be anything.
func (r row) kindAt(place int) *kind {
	if len(r.kinds) == 0 {
		return nil
	}
	return &r.kinds[min(place, len(r.kinds)-1)]
}

func (r row) checkArguments(cmd *cobra.Command, args []string) error {
	if err := arguments(r.counts())(cmd, args); err != nil {
		return err
	}
	for i, arg := range args {
		if k := r.kindAt(i); k != nil && k.check != nil {
			if err := k.check(arg); err != nil {
				return usageError{err}
			}
		}
	}
	return nil
}

// complete completes arguments by their kinds.
func (r row) complete(bus *busFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		k := r.kindAt(len(args))
		switch _, maxArgs := r.counts(); {
		case maxArgs >= 0 && len(args) >= maxArgs:
			return nil, cobra.ShellCompDirectiveNoFileComp
		case k.names == nil:
			return k.words, cobra.ShellCompDirectiveNoFileComp
		}
		return bus.complete(cmd, *k)
	}
}

// refusal is the error of a request that the bus refused, in the words of the command line.
type refusal struct {
	error
	text string
}

func (e *refusal) Error() string { return e.text }
func (e *refusal) Unwrap() error { return e.error }

// nameFlag names the flag at fault, instead of the field, in the error of a request that the bus
// refused.
func nameFlag(cmd *cobra.Command, err error) error {
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || refused.Pointer == "" {
		return err
	}
	flag := flagOf(cmd, refused.Pointer)
	if flag == "" {
		return err
	}
	if part := path.Base(refused.Pointer); strings.Count(refused.Pointer, "/") > 1 && strings.Trim(part, "0123456789") != "" {
		flag += ": " + strings.ReplaceAll(part, "_", "-") // of a flag with several values
	}
	said := flag + joint(refused.Detail) + refused.Detail
	return &refusal{err, strings.Replace(err.Error(), refused.Pointer+": "+refused.Detail, said, 1)}
}

// flagOf is the flag of a command for a member of its request, by the JSON pointer, empty if there
// is none. The flags that say which bus are for no member.
func flagOf(cmd *cobra.Command, pointer string) (flag string) {
	member, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if memberOf(f) == member && (flag == "" || f.Annotations[memberOfFlag] == nil) {
			flag = "--" + f.Name
		}
	})
	return flag
}

// memberOf is the member of a request that a flag sets.
func memberOf(f *pflag.Flag) string {
	if member := f.Annotations[memberOfFlag]; member != nil {
		return member[0]
	}
	return strings.ReplaceAll(f.Name, "-", "_")
}

// memberOfFlag is the annotation that [setMember] sets.
const memberOfFlag = "member"

// setMember says which member a flag sets, if that has another name.
func setMember(flags *pflag.FlagSet, flag, member string) {
	_ = flags.SetAnnotation(flag, memberOfFlag, []string{member})
}

// call is a command that runs.
type call struct {
	*cobra.Command
	args  []string
	bus   *client.Client
	flags *busFlags
	// subscriber is the subscriber that the command is about, nil without [row.ofSubscriber].
	subscriber *subscriber.Subscriber
}

func (c *call) jobs() *jobs.Jobs           { return jobs.New(c.bus) }
func (c *call) machine() *machines.Machine { return machines.Of(c.bus, c.args[0]) }

// These return the values of flags, which the row has.

func (c *call) given(flag string) bool             { return c.Flags().Changed(flag) }
func (c *call) text(flag string) string            { return must(c.Flags().GetString(flag)) }
func (c *call) is(flag string) bool                { return must(c.Flags().GetBool(flag)) }
func (c *call) int(flag string) int                { return must(c.Flags().GetInt(flag)) }
func (c *call) int64(flag string) int64            { return must(c.Flags().GetInt64(flag)) }
func (c *call) duration(flag string) time.Duration { return must(c.Flags().GetDuration(flag)) }

func must[T any](value T, err error) T {
	if err != nil {
		panic(err) // the row has no such flag
	}
	return value
}

// asking is how the command asks.
func (c *call) asking() *consent { return &consent{yes: c.is("yes")} }

// ask prints on stderr what is about to happen, and on a terminal asks for confirmation.
func (c *call) ask(what ...string) error { return c.asking().ask(c.Command, what...) }

// say prints a line.
func (c *call) say(line string) error {
	_, err := fmt.Fprintln(c.OutOrStdout(), terminal.Escape(line))
	return err
}

// sayOr prints a line, or with --json a value. err is the error of the request before it.
func (c *call) sayOr(line string, value any, err error) error {
	switch {
	case err != nil:
		return err
	case c.is("json"):
		return writeJSON(c.OutOrStdout(), value)
	}
	return c.say(line)
}

// note prints a line on stderr.
func (c *call) note(format string, args ...any) {
	fmt.Fprintf(c.ErrOrStderr(), "rtm: %s\n", terminal.Escape(fmt.Sprintf(format, args...)))
}

// print prints a list in the format that is wanted.
func (c *call) print(l list) error {
	l.json = c.is("json")
	return l.print(c.OutOrStdout())
}

// show prints one thing: names and values, or an object.
func (c *call) show(value any, rows [][]string) error {
	return c.print(list{value: value, header: []string{"WHAT", "VALUE"}, rows: rows})
}

// tableOf makes a list, given the names of its columns with a | between them. A column without a
// name is only for scripts, one with a * before it only for a terminal. Cells are values that
// [cellOf] takes.
func tableOf[T any](values []T, empty, header string, cells func(T) []any) list {
	l := list{value: append([]T{}, values...), empty: empty}
	columns := strings.Split(header, "|")
	for _, name := range columns {
		if name != "" {
			l.header = append(l.header, strings.TrimPrefix(name, "*"))
		}
	}
	var plain [][]string
	for _, value := range values {
		var shown, line []string
		for i, cell := range cells(value) {
			of := cellOf(cell)
			if columns[i] != "" {
				shown = append(shown, of.shown)
			}
			if !strings.HasPrefix(columns[i], "*") {
				line = append(line, of.plain)
			}
		}
		l.rows, plain = append(l.rows, shown), append(plain, line)
	}
	l.plain = writeLines(plain)
	return l
}

// printList prints the list of [tableOf].
func printList[T any](c *call, values []T, empty, header string, cells func(T) []any) error {
	return c.print(tableOf(values, empty, header, cells))
}

// listing runs a command that reads a list and prints it as [printList] does.
func listing[T any](read func(*call) ([]T, error), empty, header string, cells func(T) []any) func(*call) error {
	return func(c *call) error {
		values, err := read(c)
		if err != nil {
			return err
		}
		return printList(c, values, empty, header, cells)
	}
}

// showing runs a command that reads one thing and prints it as [call.show] does.
func showing[T any](read func(*call) (T, error), rows func(T) [][]string) func(*call) error {
	return func(c *call) error {
		value, err := read(c)
		if err != nil {
			return err
		}
		return c.show(value, rows(value))
	}
}

// saying runs a command that prints a line about its result.
func saying(do func(*call) (string, error)) func(*call) error {
	return func(c *call) error {
		line, err := do(c)
		if err != nil {
			return err
		}
		return c.say(line)
	}
}

// each runs a command that does one thing after the other, with each of its arguments from a place
// on, and prints the lines that are not empty. It ends with the first error.
func each(from int, do func(c *call, arg string) (string, error)) func(*call) error {
	return func(c *call) error {
		for _, arg := range c.args[from:] {
			line, err := do(c, arg)
			if err == nil && line != "" {
				err = c.say(line)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}
