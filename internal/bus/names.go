package bus

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

type (
	// TopicName names a topic: 1 to 64 of a-z and underscore.
	TopicName string
	// Token is the secret that a client presents, and the key under which
	// its subscriber is stored: 1 to 64 of a-z, 0-9, colon, underscore, dash.
	Token string
	// ClientName is the public name of a client, of the same form as a [Token].
	ClientName string
	// BatchID is the UID of a batch.
	BatchID string
	// WorkerID is the UID of one worker thread.
	WorkerID string
	// ReplayID is the UID of a replay of a topic's history.
	ReplayID string
)

// RootName is the name of the operator who holds the root key.
const RootName ClientName = "root"

// UIDLen is the number of characters of a UID: URL-safe Base64 of 120 bits.
const UIDLen = 20

// IsUID reports whether a text can be a UID.
func IsUID(text string) bool { return len(text) == UIDLen && IsURLSafe(text) }

// MaxTokenLen is the maximum number of characters of a token or a client's name.
const MaxTokenLen = 64

// isName reports whether text is 1 to [MaxTokenLen] characters of a-z and more.
func isName(text, more string) bool {
	valid := len(text) >= 1 && len(text) <= MaxTokenLen
	for i := 0; i < len(text) && valid; i++ {
		valid = text[i] >= 'a' && text[i] <= 'z' || strings.IndexByte(more, text[i]) >= 0
	}
	return valid
}

const moreOfTokens = "0123456789:_-"

// Validate returns an [Invalid] unless n is a topic name.
func (n TopicName) Validate() error {
	if !isName(string(n), "_") {
		return Invalidf("", "a topic name is 1 to 64 characters of a-z and _")
	}
	return nil
}

// Validate returns an [Invalid] unless t can be a token.
func (t Token) Validate() error {
	if !isName(string(t), moreOfTokens) {
		return Invalidf("", "a token is 1 to 64 characters of a-z, 0-9, colon, _ and -")
	}
	return nil
}

// Validate returns an [Invalid] unless n can be the name of a client.
func (n ClientName) Validate() error {
	switch {
	case n == "":
		return Invalidf("", "is required: 1 to %d characters of a-z, 0-9, colon, _ and -", MaxTokenLen)
	case !isName(string(n), moreOfTokens):
		return Invalidf("", "a name is 1 to 64 characters of a-z, 0-9, colon, _ and -")
	case n == RootName:
		return Invalidf("", "the name %q is the operator's; choose another", RootName)
	}
	return nil
}

// tokenSuffix is the length of the suffix that [NewToken] adds to a name: "--" and 32 hex digits.
const tokenSuffix = 2 + 32

// NewToken makes a token for a client: its name, "--", and 32 random hex digits.
// The error is an [Invalid] when the name leaves no room for the digits.
func NewToken(name ClientName) (Token, error) {
	if limit := MaxTokenLen - tokenSuffix; len(name) > limit {
		return "", Invalidf("", "a name is at most %d characters when the token is to be made from it; shorten it, or send a token", limit)
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	return Token(string(name) + "--" + hex.EncodeToString(random[:])), nil
}

// NewTokenLike is [NewToken] for any name. A name that leaves no room for the digits is cut.
func NewTokenLike(name ClientName) Token {
	token, err := NewToken(name[:min(len(name), MaxTokenLen-tokenSuffix)])
	if err != nil {
		panic(err) // there is room
	}
	return token
}

// PublicName returns the name of a client that every client may see: its own or, if that is missing
// or reveals the token, its [LegacyClientName].
func PublicName(t Token, name ClientName) ClientName {
	if name == "" || string(name) == string(t) {
		return LegacyClientName(t)
	}
	return name
}

// LegacyClientName names a client by a digest of its token, if nothing else is known: no part of a
// token may be shown.
func LegacyClientName(t Token) ClientName {
	sum := sha256.Sum256([]byte(t))
	return ClientName("client-" + hex.EncodeToString(sum[:4]))
}

// NewBatchID makes the UID of a batch, or of a dead letter.
func NewBatchID() BatchID { return BatchID(newUID(UIDLen)) }

// NewReplayID makes the UID of a replay.
func NewReplayID() ReplayID { return ReplayID(newUID(UIDLen)) }

// NewWorkerID makes a globally unique worker UID.
func NewWorkerID() WorkerID { return WorkerID(newUID(UIDLen)) }

// BatchSeedLen is the number of characters of a batch seed.
const BatchSeedLen = 16

// NewBatchSeed makes 96 random bits: the first 16 characters of the UIDs of all batches that
// one publish opens. The publish script numbers the batches in the last 4.
func NewBatchSeed() string { return newUID(BatchSeedLen) }

// NewOptionsVersion makes a random version of a subscriber's options.
func NewOptionsVersion() string { return newUID(8) }

// newUID draws until the first character is no hyphen: commands would take such a UID for a flag.
func newUID(chars int) string {
	random := make([]byte, chars*3/4)
	for {
		_, _ = rand.Read(random)
		if uid := base64.RawURLEncoding.EncodeToString(random); uid[0] != '-' {
			return uid
		}
	}
}

// EditDistance returns the Levenshtein distance of two texts in bytes: how many must be changed,
// added or removed to turn one into the other. It finds the name that a user may have meant.
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
