package signature_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/signature"
)

// sign returns the headers of a body that is written in pieces of some bytes.
func sign(secrets []signature.Secret, id, body string, at time.Time, piece int) http.Header {
	signer := signature.NewSigner(secrets, id, at)
	for rest := body; rest != ""; rest = rest[min(piece, len(rest)):] {
		_, _ = signer.Write([]byte(rest[:min(piece, len(rest))]))
	}
	header := http.Header{}
	signer.SetHeader(header)
	return header
}

// bodyOf is the body of a delivery of some events.
func bodyOf(events int) string {
	return "[" + strings.Repeat(`{"url":"https://x.example/é"},`, events-1) + `{"url":"https://x.example/1"}]`
}

// generate makes an HMAC's secret, a private key, and another secret.
func generate() []signature.Secret {
	return []signature.Secret{
		signature.Generate(signature.HMAC, now), signature.Generate(signature.Ed25519, now), signature.Generate(signature.HMAC, now),
	}
}

func TestTheVectorOfTheStandard(t *testing.T) {
	secret, err := signature.Parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", now)
	require.NoError(t, err)
	header := sign([]signature.Secret{secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`, time.Unix(1614265330, 0), 7)
	assert.Equal(t, http.Header{
		"Webhook-Id":        {"msg_p5jXN8AQM9LWM0D4loKWxJek"},
		"Webhook-Timestamp": {"1614265330"},
		"Webhook-Signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
	}, header)
}

func TestTheStandardsGoLibraryVerifies(t *testing.T) {
	secrets, at := generate(), time.Now()
	for _, events := range []int{1, 1000} {
		body := bodyOf(events)
		header := sign(secrets, "id", body, at, 100)
		for _, i := range []int{0, 2} {
			receiver, err := standardwebhooks.NewWebhook(secrets[i].Text())
			require.NoError(t, err)
			require.NoError(t, receiver.Verify([]byte(body), header))
			require.Error(t, receiver.Verify([]byte(body+" "), header))
			for name, value := range map[string]string{"webhook-id": "other", "webhook-timestamp": fmt.Sprint(at.Unix() + 1)} {
				changed := header.Clone()
				changed.Set(name, value)
				require.Error(t, receiver.Verify([]byte(body), changed), name)
			}
		}
	}
}

func TestAPlainEd25519CheckVerifies(t *testing.T) {
	secrets, body := generate(), bodyOf(10)
	header := sign(secrets, "id", body, now, 1)
	signatures := strings.Split(header.Get("webhook-signature"), " ")
	require.Len(t, signatures, 3)
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signatures[1], "v1a,"))
	require.NoError(t, err)
	public, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secrets[1].PublicKey(), "whpk_"))
	require.NoError(t, err)
	assert.True(t, ed25519.Verify(public, []byte("id.1700000000."+body), sum))
	assert.False(t, ed25519.Verify(public, []byte("id.1700000000."+body+" "), sum))
}

func TestSecretsSignUntilTheyExpire(t *testing.T) {
	secrets := generate()
	secrets[1].ExpiresAt = now.Add(time.Second)
	secrets[2].ExpiresAt = now.Add(2 * time.Second)
	for after, want := range map[time.Duration]int{0: 3, 999 * time.Millisecond: 3, time.Second: 2, 2 * time.Second: 1} {
		at := now.Add(after)
		signatures := strings.Split(sign(secrets, "id", "[]", at, 1).Get("webhook-signature"), " ")
		assert.Len(t, signatures, want, after)
		alone := sign(secrets[:1], "id", "[]", at, 1).Get("webhook-signature")
		assert.Equal(t, alone, signatures[0], "the newest is first")
		assert.Len(t, signature.NewSigner(secrets, "id", at).Types(), want)
	}
}

func TestWithoutSecretsNothingIsSigned(t *testing.T) {
	expired := generate()[:1]
	expired[0].ExpiresAt = now
	for _, secrets := range [][]signature.Secret{nil, expired} {
		assert.Empty(t, sign(secrets, "id", "[]", now, 1))
		assert.Empty(t, signature.NewSigner(secrets, "id", now).Types())
	}
}

func TestAnIDStandsForTheContent(t *testing.T) {
	assert.Equal(t, "uid", signature.ID("uid", 0, 7, 7))
	assert.Equal(t, "uid-0-3", signature.ID("uid", 0, 3, 7))
	assert.Equal(t, "uid-1-4", signature.ID("uid", 1, 4, 4))
}

// TestTheStandardsOtherLibrariesVerify runs the libraries for Python and JavaScript. That for
// Python comes with the Go module; that for JavaScript is looked for as Node does, in NODE_PATH.
func TestTheStandardsOtherLibrariesVerify(t *testing.T) {
	module := run(t, nil, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/standard-webhooks/standard-webhooks/libraries")
	python := []string{"PYTHONPATH=" + strings.TrimSpace(module) + "/python", "PYTHONDONTWRITEBYTECODE=1"}
	for name, receiver := range map[string][]string{
		"python": {"python3", "-c", pythonReceiver},
		"node":   {"node", "-e", nodeReceiver},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(receiver[0]); err != nil && os.Getenv("CI") == "" {
				t.Skipf("%s is not installed: install it to run this test", receiver[0])
			}
			if name == "node" && exec.CommandContext(t.Context(), "node", "-e", "require('standardwebhooks')").Run() != nil {
				t.Skip("install the npm package standardwebhooks, and name its node_modules in NODE_PATH, to run this test")
			}
			secrets := generate()
			for _, events := range []int{1, 1000} {
				body := bodyOf(events)
				header := sign(secrets, "id", body, time.Now(), 100)
				args := append(receiver[1:], header.Get("webhook-id"), header.Get("webhook-timestamp"), header.Get("webhook-signature"), body)
				output := run(t, python, receiver[0], append(args, secrets[0].Text(), secrets[2].Text())...)
				assert.Equal(t, "accepted refused accepted refused", strings.Join(strings.Fields(output), " "))
			}
		})
	}
}

// The receivers take the three headers, a body and secrets. With each secret they check the body,
// and another one.
const (
	pythonReceiver = `
import sys
from standardwebhooks import Webhook, WebhookVerificationError
id, timestamp, signature, body, *secrets = sys.argv[1:]
for secret in secrets:
    for received in [body, body + " "]:
        try:
            headers = {"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature}
            Webhook(secret).verify(received, headers)
            print("accepted")
        except WebhookVerificationError:
            print("refused")`
	nodeReceiver = `
const { Webhook, WebhookVerificationError } = require('standardwebhooks')
const [id, timestamp, signature, body, ...secrets] = process.argv.slice(1)
for (const secret of secrets) {
  for (const received of [body, body + ' ']) {
    try {
      const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature }
      new Webhook(secret).verify(received, headers)
      console.log('accepted')
    } catch (error) {
      if (!(error instanceof WebhookVerificationError)) throw error
      console.log('refused')
    }
  }
}`
)

// run returns the output of a command.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Env = append(os.Environ(), env...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	require.NoError(t, err)
	return string(output)
}

// BenchmarkSign signs a delivery of 100 events that is written an event at a time.
func BenchmarkSign(b *testing.B) {
	event := []byte(`{"topic":"widgets","type":"update","url":"https://warehouse.example/widgets/12","t":1700000000000,"data":{"stock":3}},`)
	secrets := generate()
	for name, some := range map[string][]signature.Secret{"hmac-sha256": secrets[:1], "ed25519": secrets[1:2]} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(100 * len(event)))
			b.ReportAllocs()
			for b.Loop() {
				signer := signature.NewSigner(some, "OFMKv1hQt3zq0Zb5AAAB", now)
				for range 100 {
					_, _ = signer.Write(event)
				}
				signer.SetHeader(http.Header{})
			}
		})
	}
}
