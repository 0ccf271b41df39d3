package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"routemaster/client"
	clientmachines "routemaster/client/machines"
	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/condition"
	"routemaster/internal/machines/definition"
	"routemaster/internal/terminal"
)

// loadMachines reads the files of --machines, which replace the ones that web would apply. A layer
// before them has the service's URL.
func (d *devBus) loadMachines() error {
	if len(d.machineFiles) == 0 {
		return nil
	}
	d.config.Machines = nil
	service := definition.File{Name: "--machines", Content: fmt.Appendf(nil, "placeholders: {service: %q}", d.service.url())}
	loaded, files, err := readDefinition(d.in, d.errors, d.machineFiles, service)
	if problems, wrong := errors.AsType[definition.Errors](err); wrong {
		if err := printProblems(d.out, problems); err != nil {
			return err
		}
		return fmt.Errorf("--machines: the definition has %s; nothing was started", count(len(problems), "problem"))
	}
	if err == nil {
		loaded.Source, err = definition.Merged(files...)
	}
	if err != nil {
		return fmt.Errorf("--machines: %w", err)
	}
	d.machines = loaded
	return nil
}

// applyMachines applies the state machines of --machines, if there are, and lists them.
func (d *devBus) applyMachines(ctx context.Context) error {
	if d.machines == nil {
		return nil
	}
	if _, err := clientmachines.Apply(ctx, d.as(d.config.RootKey), d.machines.Source); err != nil {
		err = fmt.Errorf("--machines: %w", err)
		if refused, ok := errors.AsType[*client.Error](err); ok && len(refused.States) > 0 {
			resting := refused.States[0]
			apply := bus.Command("machine apply --move=", append([]string{resting.Machine + "." + resting.State + ":NEW"}, d.machineFiles...)...)
			err = fmt.Errorf("%w; run `rtm dev` without --machines, and then %s", err, apply)
		}
		return err
	}
	fmt.Fprintf(d.out, "\n-> applied %s:\n", sizeOf(d.machines))
	for _, m := range d.machines.Machines {
		var states []string
		for _, s := range m.States {
			states = append(states, string(s.Name))
		}
		fmt.Fprintf(d.out, "   %s: %s\n", terminal.Escape(string(m.Name)), strings.Join(states, ", "))
	}
	return nil
}

// machineCommands are commands to try with the first state machine; none if there is none.
func (d *devBus) machineCommands(token string) string {
	if d.machines == nil || len(d.machines.Machines) == 0 {
		return ""
	}
	m := d.machines.Machines[0]
	name := terminal.Escape(string(m.Name))
	commands := []string{"", "  # make a label, change it, and see what it waits for and how it came there"}
	for _, command := range []string{"add", "set", "show", "history"} {
		words := fmt.Sprintf("  bin/rtm label %s %s user-7 ", command, bus.ShellWord(name))
		if command == "set" {
			path := pathToTry(m)
			if path == "" {
				continue
			}
			words += path + "=true "
		}
		commands = append(commands, words+fmt.Sprintf("-b %s -t %s", d.api, token))
	}
	return strings.Join(commands, "\n") + "\n"
}

// pathToTry is the path of a machine's first metadata trigger whose gate can be evaluated if it is
// true there; empty if there is none.
func pathToTry(m *machines.Machine) string {
	for _, s := range m.States {
		if s.Gate == nil {
			continue
		}
		for _, t := range s.Gate.Triggers {
			path := strings.Join(t.Metadata, ".")
			metadata, err := assign(nil, path+"=true")
			if path == "" || err != nil {
				continue
			}
			tried := condition.Environment{Metadata: map[string]any(metadata), EnteredState: time.Now(), Now: time.Now()}
			if _, err := s.Gate.Condition.Evaluate(&tried); err == nil || errors.Is(err, condition.ErrUnknown) {
				return path
			}
		}
	}
	return ""
}
