package main

import (
	"cmp"
	"time"

	"github.com/spf13/pflag"

	"routemaster/client/subscriber"
)

// maxExpiry is how long replaced secrets may go on signing.
const maxExpiry = 7 * 24 * time.Hour

var secretRows = row{
	use: "secret", short: "have deliveries signed, and replace secrets", ofSubscriber: true,
	example: "  rtm sub secret add -b @production\n  rtm sub secret list -b @production",
	rows: []row{
		{
			use: "add", short: "have deliveries signed with another secret, and print what receivers check with",
			long: `Have the bus make a secret and sign all deliveries with it (Standard Webhooks 1.0), and print it: the bus does not show
it again. For ed25519 it prints the public key, which is no secret; the private key stays in the bus.

Secrets that were there go on signing for a day, or for --others-expire-in, or for good with --keep-others. So a
receiver that has either secret accepts every delivery, and you can replace a secret without losing one.`,
			example: "  rtm sub secret add -b @production\n" +
				"  rtm sub secret add --type ed25519 --others-expire-in 1h -b bus.example -t shop--1\n" +
				"  rtm sub secret add --secret @secret.txt --keep-others -b bus.example -t shop--1",
			flags: func(f *pflag.FlagSet) {
				f.String("type", "", "hmac-sha256, which is the default, or ed25519")
				f.String("secret", "", "a `SECRET` of yours (whsec_… or whsk_…), or @FILE with it, instead of a random one")
				f.Duration("others-expire-in", 24*time.Hour, "how long the other secrets go on signing")
				f.Bool("keep-others", false, "let the other secrets sign for good")
			},
			run: saying(addSecret),
		},
		{
			use: "list", short: "list the secrets that deliveries are signed with, newest first",
			long: `List the secrets that deliveries are signed with, newest first, without the secrets themselves. For scripts, a line for
each, with tabs: ID, type, when it was added, when it expires, and the public key if it has one. With --json an array
of objects as the bus's GET /subscriber/secrets has them.`,
			example: "  rtm sub secret list -b @production\n  rtm sub secret list -b bus.example -t shop--1 --json",
			json:    jsonArray,
			run: listing(func(c *call) ([]subscriber.Secret, error) { return c.subscriber.Secrets(c.Context()) },
				"Deliveries are not signed.", "ID|TYPE|ADDED|EXPIRES|PUBLIC KEY", func(s subscriber.Secret) []any {
					return []any{s.ID, s.Type, secretTime(s.CreatedAt), secretTime(s.ExpiresAt), dashed(s.PublicKey)}
				}),
		},
		{
			use: "del ID", short: "have deliveries not signed with a secret any more",
			example: "  rtm sub secret del O7JRUAQHXSLQ4T3XUC4XJ5QFGY -b @production",
			run:     func(c *call) error { return c.subscriber.DeleteSecret(c.Context(), c.args[0]) },
		},
	},
}

func addSecret(c *call) (shown string, err error) {
	secret := subscriber.NewSecret{Type: c.text("type"), KeepOthers: c.is("keep-others")}
	if c.given("others-expire-in") {
		expiry := c.duration("others-expire-in")
		if expiry < 0 || expiry > maxExpiry || secret.KeepOthers {
			return "", wrongFlag("others-expire-in", "0 to 168h, without --keep-others")
		}
		secret.OthersExpireIn = &expiry
	}
	if secret.Secret, err = secretOf(c.text("secret")); err != nil {
		return "", err
	}
	added, err := c.subscriber.AddSecret(c.Context(), secret)
	return cmp.Or(added.Secret, added.PublicKey), err
}

// secretTime is a time of a secret, which scripts read in RFC 3339.
func secretTime(t subscriber.Time) cell {
	if t.IsZero() {
		return dashed("")
	}
	return cell{clock(t.Time), t.UTC().Format(time.RFC3339)}
}
