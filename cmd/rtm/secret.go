package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"routemaster/client/subscriber"
	"routemaster/internal/terminal"
)

func newSubSecretCommand(about *subscriberFlags) *cobra.Command {
	return newGroup("secret", "have deliveries signed, and replace secrets",
		"  rtm sub secret add -b @production\n  rtm sub secret list -b @production",
		newSecretAddCommand(about), newSecretListCommand(about), newSecretDelCommand(about))
}

// maxExpiry is how long replaced secrets may go on signing.
const maxExpiry = 7 * 24 * time.Hour

func newSecretAddCommand(about *subscriberFlags) *cobra.Command {
	var kind, own string
	var expiry time.Duration
	var keep bool
	command := &cobra.Command{
		Use:   "add",
		Short: "have deliveries signed with another secret, and print what receivers check with",
		Long: `Have the bus make a secret and sign all deliveries with it (Standard Webhooks 1.0), and print it: the bus does not show
it again. For ed25519 it prints the public key, which is no secret; the private key stays in the bus.

Secrets that were there go on signing for a day, or for --others-expire-in, or for good with --keep-others. So a
receiver that has either secret accepts every delivery, and you can replace a secret without losing one.`,
		Example: "  rtm sub secret add -b @production\n" +
			"  rtm sub secret add --type ed25519 --others-expire-in 1h -b bus.example -t shop--1\n" +
			"  rtm sub secret add --secret @secret.txt --keep-others -b bus.example -t shop--1",
		Args: arguments(0, 0),
		RunE: about.run(func(cmd *cobra.Command, s *subscriber.Subscriber, _ []string) error {
			secret := subscriber.NewSecret{Type: kind, KeepOthers: keep}
			if cmd.Flags().Changed("others-expire-in") {
				if expiry < 0 || expiry > maxExpiry || keep {
					return wrongFlag("others-expire-in", "0 to 168h, without --keep-others")
				}
				secret.OthersExpireIn = &expiry
			}
			var err error
			if secret.Secret, err = secretOf(own); err != nil {
				return err
			}
			added, err := s.AddSecret(cmd.Context(), secret)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), terminal.Escape(cmp.Or(added.Secret, added.PublicKey)))
			return err
		}),
	}
	command.Flags().StringVar(&kind, "type", "", "hmac-sha256, which is the default, or ed25519")
	command.Flags().StringVar(&own, "secret", "", "a `SECRET` of yours (whsec_… or whsk_…), or @FILE with it, instead of a random one")
	command.Flags().DurationVar(&expiry, "others-expire-in", 24*time.Hour, "how long the other secrets go on signing")
	command.Flags().BoolVar(&keep, "keep-others", false, "let the other secrets sign for good")
	return command
}

func newSecretListCommand(about *subscriberFlags) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "list",
		Short: "list the secrets that deliveries are signed with, newest first",
		Long: `List the secrets that deliveries are signed with, newest first, without the secrets themselves. For scripts, a line for
each, with tabs: ID, type, when it was added, when it expires, and the public key if it has one. With --json an array
of objects as the bus's GET /subscriber/secrets has them.`,
		Example: "  rtm sub secret list -b @production\n  rtm sub secret list -b bus.example -t shop--1 --json",
		Args:    arguments(0, 0),
		RunE: about.run(func(cmd *cobra.Command, s *subscriber.Subscriber, _ []string) error {
			secrets, err := s.Secrets(cmd.Context())
			if err != nil {
				return err
			}
			var rows, plain [][]string
			for _, secret := range secrets {
				rows = append(rows, []string{
					secret.ID, secret.Type, clock(secret.CreatedAt.Time), clock(secret.ExpiresAt.Time), cmp.Or(secret.PublicKey, "-"),
				})
				plain = append(plain, []string{
					secret.ID, secret.Type, timestamp(secret.CreatedAt), timestamp(secret.ExpiresAt), secret.PublicKey,
				})
			}
			return list{
				json: asJSON, value: append([]subscriber.Secret{}, secrets...), empty: "Deliveries are not signed.",
				header: []string{"ID", "TYPE", "ADDED", "EXPIRES", "PUBLIC KEY"}, rows: rows,
				plain: func(w io.Writer) error { return lines(w, plain) },
			}.print(cmd.OutOrStdout())
		}),
	}
	addJSONFlag(command, &asJSON)
	return command
}

// timestamp is a time for scripts; empty if there is none.
func timestamp(t subscriber.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func newSecretDelCommand(about *subscriberFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "del ID",
		Short:   "have deliveries not signed with a secret any more",
		Example: "  rtm sub secret del O7JRUAQHXSLQ4T3XUC4XJ5QFGY -b @production",
		Args:    arguments(1, 1),
		RunE: about.run(func(cmd *cobra.Command, s *subscriber.Subscriber, args []string) error {
			return s.DeleteSecret(cmd.Context(), args[0])
		}),
	}
}
