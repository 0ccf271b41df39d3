package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v4"
)

// rcEntry is a bus of .rtmrc.
type rcEntry struct{ Bus, Token string }

// rcFile is a .rtmrc.
type rcFile struct {
	path string
	// local is whether it is in the working directory, which may belong to another user.
	local bool
	buses map[string]rcEntry
}

// names returns the names of the buses, as -b takes them.
func (f rcFile) names() (names []string) {
	for name := range f.buses {
		names = append(names, "@"+name)
	}
	slices.Sort(names)
	return names
}

// readRC reads .rtmrc in the working directory, or else in the home directory. Without a file there
// are no buses.
func readRC() (rcFile, error) {
	file, err := readRCFile(".rtmrc", true)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return rcFile{}, nil
	}
	file, err = readRCFile(filepath.Join(home, ".rtmrc"), false)
	if errors.Is(err, fs.ErrNotExist) {
		return rcFile{}, nil
	}
	return file, err
}

// readRCFile reads a file. A local one decides where a token is sent, so it must belong to the
// user.
func readRCFile(path string, local bool) (rcFile, error) {
	read := rcFile{path: path, local: local}
	file, err := os.Open(path)
	if err != nil {
		return read, err
	}
	defer file.Close()
	if local {
		if err := checkOwn(file); err != nil {
			return read, fmt.Errorf("%s in the working directory is refused: %w", path, err)
		}
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return read, err
	}
	if yaml.Unmarshal(text, &read.buses) != nil { // its error may show a token
		return rcFile{}, fmt.Errorf("%s cannot be read: it must be YAML, with `bus:` and `token:` under each name", path)
	}
	return read, nil
}

// isPlain reports whether requests to a URL are sent unencrypted to another host.
func isPlain(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" {
		return false
	}
	address, err := netip.ParseAddr(cmp.Or(map[string]string{"localhost": "127.0.0.1"}[u.Hostname()], u.Hostname()))
	return err != nil || !address.Unmap().IsLoopback()
}
