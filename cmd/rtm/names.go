package main

import (
	"errors"
	"net/http"

	"github.com/spf13/pflag"

	"routemaster/client"
	"routemaster/internal/bus"
	"routemaster/internal/terminal"
)

func addShowTokensFlag(flags *pflag.FlagSet) {
	flags.Bool("show-tokens", false, "show tokens, which are secrets: on a terminal instead of names")
}

// thisClient is how a table shows the client itself, if the bus does not say its name.
const thisClient = "(this client)"

// naming returns how a table shows clients: by name. The bus shows tokens to root, and to each
// client its own. If the output is not a terminal, or tokens are to be shown, it changes nothing,
// and sends no request.
func (c *call) naming() (func(identity string) string, error) {
	if c.is("show-tokens") || !terminal.Is(c.OutOrStdout()) {
		return func(identity string) string { return identity }, nil
	}
	tokens, err := c.bus.Tokens(c.Context())
	if answer, ok := errors.AsType[*client.Error](err); ok && answer.Status == http.StatusForbidden {
		_, own, _ := c.flags.resolve()
		return func(identity string) string {
			if identity == own {
				return thisClient
			}
			return identity
		}, nil
	}
	if err != nil {
		return nil, err
	}
	names := map[string]bus.ClientName{}
	for _, token := range tokens {
		names[token.Token] = bus.ClientName(token.Name)
	}
	return func(identity string) string {
		if identity == "" {
			return ""
		}
		return string(bus.PublicName(bus.Token(identity), names[identity]))
	}, nil
}
