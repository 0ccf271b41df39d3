package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
)

// devKeys are the root keys that rtm dev makes.
var devKeys = regexp.MustCompile(`\Aroot-[A-Z2-7]{26}\z`)

// devRootKey returns the root key of rtm dev. It is kept in a file of the user, so that commands
// and shells of the last run go on; where there is no place for that, each run has another.
func devRootKey() string {
	made := "root-" + rand.Text()
	dir, err := stateDir()
	if err != nil {
		return made
	}
	path := filepath.Join(dir, "dev-root-key")
	if known, err := os.ReadFile(path); err == nil && devKeys.Match(known) {
		return string(known)
	}
	_ = os.WriteFile(path, []byte(made), 0o600)
	return made
}

// stateDir creates the directory in which rtm dev keeps files from run to run, for the user only:
// in $XDG_STATE_HOME or its default in the home directory.
func stateDir() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // a relative one is ignored: XDG Base Directory Specification
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		state = filepath.Join(home, ".local", "state")
	}
	dir := filepath.Join(state, "routemaster")
	return dir, os.MkdirAll(dir, 0o700)
}

// devToken is the token of a client of rtm dev, the same for the same root key.
func devToken(rootKey, client string) string {
	sum := hmac.New(sha256.New, []byte(rootKey))
	sum.Write([]byte("rtm dev: " + client))
	return client + "--" + hex.EncodeToString(sum.Sum(nil)[:16])
}
