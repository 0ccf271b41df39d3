package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"routemaster/internal/app"
)

// healthTimeout bounds rtm health: shorter than supervisors wait, longer than Redis takes to fail.
const healthTimeout = 10 * time.Second

func newHealthCommand() *cobra.Command {
	var ready bool
	command := &cobra.Command{
		Use:   "health [URL]",
		Short: "ask whether web or worker on this host lives, for a container's health check",
		Long: `Ask web or worker for /health, or with --ready for /health/ready, and fail unless the answer is 200. Without a URL
it asks the program that has the settings of this environment, as a health check in a container does: on
ROUTEMASTER_METRICS_ADDR, and on PORT if web is there; or only on PORT, where web serves, if that address is not set.
It needs no token.`,
		Example: "  rtm health\n  rtm health --ready http://127.0.0.1:9101",
		Args:    arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "/health"
			if ready {
				path = "/health/ready"
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
			defer cancel()
			if len(args) == 1 {
				_, err := askHealth(ctx, strings.TrimRight(args[0], "/")+path, false)
				return err
			}
			return askOwnHealth(ctx, path)
		},
	}
	command.Flags().BoolVar(&ready, "ready", false, "ask whether it can serve, too: whether Redis answers")
	return command
}

// askOwnHealth asks the program with the settings of the environment.
func askOwnHealth(ctx context.Context, path string) error {
	lookup, err := app.LookupEnv()
	if err != nil {
		return err
	}
	c, err := app.LoadConfig(lookup)
	if err != nil {
		return err
	}
	scheme := "http"
	if c.TLSCert != "" {
		scheme = "https"
	}
	web := scheme + "://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port)) + path
	if c.MetricsAddr == "" {
		if _, err = askHealth(ctx, web, true); errors.Is(err, syscall.ECONNREFUSED) {
			err = fmt.Errorf("%w; web must listen there, and worker needs ROUTEMASTER_METRICS_ADDR=127.0.0.1:9100, or another "+
				"address, to be asked at", err)
		}
		return err
	}
	host, port, err := net.SplitHostPort(c.MetricsAddr)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	program, err := askHealth(ctx, "http://"+net.JoinHostPort(host, port)+path, true)
	if err == nil && program == "web" {
		_, err = askHealth(ctx, web, true)
	}
	return err
}

// askHealth fails unless a URL answers 200. It returns which program says to be there, empty if it
// does not say. The certificate of a program on this host, which is local, has the name that others
// know it by.
func askHealth(ctx context.Context, url string, local bool) (program string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", usageError{err}
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: local}}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", fmt.Errorf("%s: %w", url, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return "", fmt.Errorf("%s answered %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
	return response.Header.Get("Routemaster-Program"), nil
}
