package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/internal/terminal"
)

func newVerifyCommand() *cobra.Command {
	var secrets []string
	var anyTime bool
	command := &cobra.Command{
		Use:   "verify HEADERS BODY --secret SECRET",
		Short: "check the signature of a delivery",
		Long: `Check that a delivery was signed with a secret, as Standard Webhooks 1.0 says. HEADERS is a file with its headers, a
line like "webhook-id: …" for each; other lines are passed over. BODY is a file with its body, byte for byte. One of
them may be -, which is the standard input.

A delivery is accepted within 5 minutes of its time, unless --any-time is given. The exit status is 1 if it is refused.`,
		Example: "  rtm verify headers.txt body.json --secret whsec_…\n" +
			"  rtm verify headers.txt - --secret @secret.txt --any-time < body.json",
		Args: arguments(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			verifier, err := newVerifier(secrets)
			if err != nil {
				return err
			}
			texts := make([][]byte, len(args))
			for i, name := range args {
				if texts[i], err = readInput(cmd.InOrStdin(), name); err != nil {
					return err
				}
			}
			header, at := parseHeaders(texts[0]), time.Now()
			signed, _ := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
			if anyTime {
				at = time.Unix(signed, 0)
			}
			if err := verifier.Verify(header, texts[1], at); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s was signed at %s\n",
				terminal.Escape(header.Get("webhook-id")), time.Unix(signed, 0).UTC().Format(time.RFC3339))
			return err
		},
	}
	command.Flags().StringArrayVar(&secrets, "secret", nil,
		"the `SECRET` (whsec_…) or the public key (whpk_…), or @FILE with it; several if one of them is enough")
	command.Flags().BoolVar(&anyTime, "any-time", false, "accept a delivery that was recorded earlier")
	return command
}

// newVerifier makes a verifier from the values of --secret.
func newVerifier(flags []string) (*client.Verifier, error) {
	var secrets []string
	for _, flag := range flags {
		secret, err := secretOf(flag)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	v, err := client.NewVerifier(secrets...)
	if err != nil {
		return nil, wrongFlag("secret", "whsec_… or whpk_…, or @FILE with it")
	}
	return v, nil
}

// secretOf is the value of a flag that is a secret, or names a file with it, which other users do
// not see in the list of processes.
func secretOf(flag string) (string, error) {
	name, isFile := strings.CutPrefix(flag, "@")
	if !isFile {
		return flag, nil
	}
	text, err := os.ReadFile(name)
	return strings.TrimSpace(string(text)), err
}

// readInput reads a file, or the standard input for -.
func readInput(stdin io.Reader, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}

// parseHeaders reads lines like "name: value", and passes over others: a request line, for example.
func parseHeaders(text []byte) http.Header {
	header := http.Header{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok {
			header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return header
}
