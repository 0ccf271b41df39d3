package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/cli/browser"
	"github.com/spf13/pflag"

	"routemaster/client"
	"routemaster/internal/terminal"
)

// consoleLogin is the body of a request for a login to the console.
type consoleLogin struct {
	Person   string `json:"person,omitempty"`
	LookOnly bool   `json:"look_only"`
}

var consoleRow = row{
	use: "console", short: "open the console of a bus in a browser, logged in",
	long: `Open the console of a bus in a browser, logged in with the token or the root key. Neither leaves this command but to
the bus: the browser gets a link that logs in once, within a minute. Anybody who has the link may use it, so it should
go nowhere else. If no browser can be started, as on a host without a desktop, the link is printed.`,
	example: "  rtm console -b @production\n  rtm console -b bus.example -t $ROOT_KEY --look-only\n" +
		"  rtm console -b @production --print",
	flags: func(f *pflag.FlagSet) {
		f.Bool("look-only", false, "have the login change nothing, as for a screen on a wall")
		f.String("name", "", "who you are, for the log and the activity")
		f.Bool("print", false, "print the link, and open no browser")
		setMember(f, "name", "person")
	},
	run: openConsole,
}

func openConsole(c *call) error {
	at, _, err := c.flags.resolve()
	if err != nil {
		return usageError{err}
	}
	link, err := consoleLogin{Person: c.text("name"), LookOnly: c.is("look-only")}.link(c.Context(), c.bus, at)
	if err != nil {
		return err
	}
	if !c.is("print") {
		notice := c.ErrOrStderr()
		fmt.Fprintf(notice, "Opening %s://%s%s in a browser.\n", link.Scheme, link.Host, link.EscapedPath())
		browser.Stdout, browser.Stderr = notice, notice
		if err = browser.OpenURL(link.String()); err == nil {
			return nil
		}
		fmt.Fprintf(notice, "No browser could be started: %v. Open this within a minute:\n", err)
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), link)
	return err
}

// link asks the bus at an address for a link that logs in.
func (l consoleLogin) link(ctx context.Context, c *client.Client, bus string) (*url.URL, error) {
	var made struct {
		URL string `json:"url"`
	}
	_, err := c.Call(ctx, client.Request{
		Operation: "log in to the console", Method: http.MethodPost, Path: "/console_logins", Body: l,
	}, &made)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(strings.TrimRight(bus, "/") + "/")
	if err != nil {
		return nil, err
	}
	link, err := base.Parse(made.URL)
	// A browser may start any program for a URL that is not a page.
	if err != nil || link.Scheme != "https" && link.Scheme != "http" || link.Hostname() == "" || link.Fragment == "" {
		return nil, fmt.Errorf("the bus gave no link to its console: %q", terminal.Escape(made.URL))
	}
	return link, nil
}
