package app

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"routemaster/internal/console"
	"routemaster/internal/overview/samples"
	"routemaster/internal/store"
	"routemaster/internal/web"
	"routemaster/internal/web/rest"
)

// addConsole has web serve the console, unless it is off.
func addConsole(to *web.Config, c Config, st *store.Store, live *samples.Live, log *slog.Logger) {
	if c.Console == "off" {
		return
	}
	sessions := console.NewSessions(st.Partition(), c.RootKey, c.clock.Now)
	to.Logins = sessions
	to.Console = func(api http.Handler, bodies *rest.Buffers) http.Handler {
		return console.New(console.Config{
			RootKey: c.RootKey, Name: c.AppName, Environment: c.Env, Version: Version(),
			ReadOnly: c.Console == "read-only", Secure: c.ForceTLS,
			Sessions: sessions, Guesses: to.Guesses, Bodies: bodies, Live: live, Log: log, Now: c.clock.Now,
		}, api)
	}
}

// listenForConsole listens where the console is served by itself; nil if it is not.
func listenForConsole(c Config) (net.Listener, error) {
	if c.ConsoleAddr == "" || c.Console == "off" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", c.ConsoleAddr)
	if err != nil {
		return nil, fmt.Errorf("ROUTEMASTER_CONSOLE_ADDR: %w", err)
	}
	return listener, nil
}

// consoleAddress is where the console is served by itself, for the log.
func consoleAddress(on net.Listener) slog.Attr {
	if on == nil {
		return slog.Attr{}
	}
	return slog.String("console_address", on.Addr().String())
}
