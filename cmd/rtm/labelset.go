package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/client/machines"
	"routemaster/internal/bus"
	internal "routemaster/internal/machines"
	"routemaster/internal/terminal"
)

// metadataFlags say what metadata is sent, and how its label is printed.
type metadataFlags struct {
	waitFlag
	data   string
	asJSON bool
}

func (f *metadataFlags) add(command *cobra.Command) {
	f.waitFlag.add(command)
	command.Flags().StringVar(&f.data, "data", "", "metadata, a `JSON` object; @FILE reads it from a file, - from the standard input")
	command.Flags().BoolVar(&f.asJSON, "json", false, "print the label as a JSON object")
}

// object reads the metadata of the arguments, which win, and of --data. What is wrong is a
// [usageError].
func (f *metadataFlags) object(cmd *cobra.Command, args []string) (object internal.Object, err error) {
	text, err := readFlag(cmd, "data", f.data)
	if err != nil {
		return nil, err
	}
	object = internal.Object{}
	if text != nil {
		if object, err = internal.ParseObject(text); err != nil {
			return nil, usageError{fmt.Errorf("--data %s", detailOf(err))}
		}
	}
	for _, arg := range args {
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

// metadataChange changes a label by metadata.
type metadataChange func(cmd *cobra.Command, m *machines.Machine, name string, object internal.Object) (machines.Label, error)

// change runs a change by the metadata of the command, and prints the state of the label then.
func (f *metadataFlags) change(to *busFlags, do metadataChange) func(*cobra.Command, []string) error {
	return f.run(to, func(cmd *cobra.Command, m *machines.Machine, args []string) error {
		object, err := f.object(cmd, args[1:])
		if err != nil {
			return err
		}
		label, err := do(cmd, m, args[0], object)
		if err != nil {
			return err
		}
		if f.asJSON {
			return writeJSON(cmd.OutOrStdout(), label)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), terminal.Escape(label.State))
		return err
	})
}

const metadataHelp = `VALUE is JSON, or else a string as it is: 7 is a number, and '"7"' a string. Dots in a PATH are for objects in objects.
--data is for names with dots, and for all at once.

The state that the label has then is printed, when it has come to rest or --wait is over.`

func newLabelAddCommand(to *busFlags) *cobra.Command {
	var f metadataFlags
	command := &cobra.Command{
		Use:   "add MACHINE LABEL [PATH=VALUE...]",
		Short: "make a label, with its metadata",
		Long:  "Make a label, which begins in the first state of the machine. It is an error if there is one of the name.\n\n" + metadataHelp,
		Example: "  rtm label add drip_feed user-7 plan=free -b @production\n" +
			"  rtm label add drip_feed user-7 --data @user.json -b @production",
		Args:              labelArgs(1, -1, 1),
		ValidArgsFunction: to.completeMachines,
		RunE: f.change(to, func(cmd *cobra.Command, m *machines.Machine, name string, object internal.Object) (machines.Label, error) {
			return m.Create(cmd.Context(), name, object)
		}),
	}
	f.add(command)
	return command
}

func newLabelSetCommand(to *busFlags) *cobra.Command {
	var f metadataFlags
	var create bool
	command := &cobra.Command{
		Use:   "set MACHINE LABEL PATH=VALUE...",
		Short: "merge metadata into that of a label, which may move it",
		Long: "Merge metadata into that of a label, which has its gate evaluated if that has a trigger for it: objects are merged,\n" +
			"anything else replaces what is there, and null removes it.\n\n" + metadataHelp,
		Example: "  rtm label set drip_feed user-7 plan=pro address.city=null -b @production\n" +
			"  jq .user event.json | rtm label set drip_feed user-7 --create --data - -b @production",
		Args:              labelArgs(1, -1, 1),
		ValidArgsFunction: to.completeMachines,
		RunE: f.change(to, func(cmd *cobra.Command, m *machines.Machine, name string, object internal.Object) (machines.Label, error) {
			if len(object) == 0 && !create {
				return machines.Label{}, errNoChange
			}
			return mergeMetadata(cmd, m, name, object, create)
		}),
	}
	f.add(command)
	command.Flags().BoolVar(&create, "create", false, "make the label if there is none")
	return command
}

// mergeMetadata merges metadata into that of a label, or makes the label with it.
func mergeMetadata(cmd *cobra.Command, m *machines.Machine, name string, object internal.Object, create bool) (machines.Label, error) {
	label, err := m.Merge(cmd.Context(), name, object)
	if !create || !isNotFound(err) {
		return label, err
	}
	label, err = m.Create(cmd.Context(), name, internal.Object{}.Merge(object, false))
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusConflict { // somebody else was first
		return m.Merge(cmd.Context(), name, object)
	}
	return label, err
}
