package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"routemaster/internal/terminal"
)

// consent asks before a command removes something for good.
type consent struct{ yes bool }

// errNotWanted says that the answer was no.
var errNotWanted = errors.New("nothing was changed")

func (a *consent) add(command *cobra.Command) {
	command.Flags().BoolVar(&a.yes, "yes", false, "do not ask on a terminal")
}

// asks reports whether the command asks: on a terminal, and not in a script.
func (a *consent) asks(cmd *cobra.Command) bool { return !a.yes && terminal.Is(cmd.InOrStdin()) }

// ask prints on stderr what is about to happen, a line each, and on a terminal asks for
// confirmation. The error is [errNotWanted], or the context's.
func (a *consent) ask(cmd *cobra.Command, what ...string) error {
	for _, line := range what {
		fmt.Fprintln(cmd.ErrOrStderr(), "rtm:", terminal.Escape(line))
	}
	if !a.asks(cmd) {
		return nil
	}
	fmt.Fprint(cmd.ErrOrStderr(), "Go on? [y/N] ")
	answers := make(chan string, 1)
	go func() { // until there is a line: a read of a terminal cannot be stopped, and Ctrl-C ends rtm
		answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errNotWanted
	case <-cmd.Context().Done():
		fmt.Fprintln(cmd.ErrOrStderr())
		return errNotWanted
	}
}
