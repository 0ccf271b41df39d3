package signature_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/signature"
)

var now = time.UnixMilli(1_700_000_000_123)

// encoded is n equal bytes in base64.
func encoded(n int) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, n)) }

func TestGeneratedSecrets(t *testing.T) {
	for kind, prefix := range map[signature.Type]string{signature.HMAC: "whsec_", signature.Ed25519: "whsk_"} {
		secret := signature.Generate(kind, now)
		assert.Equal(t, kind, secret.Type())
		assert.True(t, strings.HasPrefix(secret.Text(), prefix))
		assert.Equal(t, now, secret.CreatedAt)
		assert.Zero(t, secret.ExpiresAt)
		again, err := signature.Parse(secret.Text(), now)
		require.NoError(t, err)
		assert.Equal(t, secret.Text(), again.Text())
		assert.Equal(t, secret.PublicKey(), again.PublicKey())
		assert.NotEqual(t, secret.ID, again.ID)
		other := signature.Generate(kind, now)
		assert.NotEqual(t, secret.Text(), other.Text())
	}
	assert.Len(t, signature.Generate(signature.HMAC, now).Text(), len("whsec_")+base64.StdEncoding.EncodedLen(32))
}

func TestBroughtSecretsAreUsedAsTheyAre(t *testing.T) {
	seed := bytes.Repeat([]byte{7}, ed25519.SeedSize)
	private := ed25519.NewKeyFromSeed(seed)
	public := "whpk_" + base64.StdEncoding.EncodeToString(private.Public().(ed25519.PublicKey))
	whole := "whsk_" + base64.StdEncoding.EncodeToString(private)
	for text, want := range map[string][2]string{
		"whsec_" + encoded(24):                         {"whsec_" + encoded(24), ""},
		"whsec_" + encoded(64):                         {"whsec_" + encoded(64), ""},
		"whsec_" + strings.TrimRight(encoded(64), "="): {"whsec_" + encoded(64), ""},
		"whsk_" + encoded(32):                          {whole, public},
		whole:                                          {whole, public},
	} {
		secret, err := signature.Parse(text, now)
		require.NoError(t, err, text)
		assert.Equal(t, want, [2]string{secret.Text(), secret.PublicKey()})
	}
}

func TestWhatIsNoSecretIsRefusedWithoutBeingShown(t *testing.T) {
	mismatched := append(bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{8}, 32)...)
	for _, text := range []string{
		"", "whsec_", "whsec_" + encoded(23), "whsec_" + encoded(65), "whsec_*" + encoded(32), encoded(32), "WHSEC_" + encoded(32),
		"whpk_" + encoded(32), "whsk_" + encoded(31), "whsk_" + encoded(33), "whsk_" + encoded(24),
		"whsk_" + base64.StdEncoding.EncodeToString(mismatched), " whsec_" + encoded(32),
	} {
		_, err := signature.Parse(text, now)
		var invalid *bus.Invalid
		require.ErrorAs(t, err, &invalid, text)
		assert.NotContains(t, err.Error(), encoded(20)[:20], text)
	}
}

func TestParseType(t *testing.T) {
	for _, kind := range []signature.Type{signature.HMAC, signature.Ed25519} {
		parsed, err := signature.ParseType(string(kind))
		require.NoError(t, err)
		assert.Equal(t, kind, parsed)
	}
	for _, text := range []string{"", "HMAC-SHA256", "rsa"} {
		_, err := signature.ParseType(text)
		assert.EqualError(t, err, "must be hmac-sha256 or ed25519", text)
	}
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	for _, text := range []string{"whsec_" + encoded(32), "whsk_" + encoded(32)} {
		secret, err := signature.Parse(text, now)
		require.NoError(t, err)
		stored := secret.Seal(signature.Keyring{})
		signer := signature.NewSigner([]signature.Secret{secret}, "id", now)
		for verb, values := range map[string][]any{
			"%v %+v %#v":             {struct{ s signature.Secret }{secret}, signer, struct{ s *signature.Signer }{signer}},
			"%v %+v %#v %s %q %x %d": {secret, &secret, []signature.Secret{secret}, stored, &stored, signature.List{stored}},
		} {
			for _, value := range values {
				printed := fmt.Sprintf(verb, slices.Repeat([]any{value}, strings.Count(verb, "%"))...)
				for _, shown := range []string{encoded(32)[:20], "7 7 7", "0x7, 0x7", "070707", "whsec_", "whsk_"} {
					assert.NotContains(t, printed, shown, "%T", value)
				}
			}
		}
	}
}
