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
	// local says that it is the working directory's, which may be somebody else's.
	local bool
	buses map[string]rcEntry
}

// names are the buses, as -b takes them.
func (f rcFile) names() (names []string) {
	for name := range f.buses {
		names = append(names, "@"+name)
	}
	slices.Sort(names)
	return names
}

// readRC reads .rtmrc in the working directory, else in the home directory. No file is no bus.
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

// readRCFile reads one. A local one decides where a token is sent, so it must be the user's own.
func readRCFile(path string, local bool) (rcFile, error) {
	read := rcFile{path: path, local: local}
	file, err := os.Open(path)
	if err != nil {
		return read, err
	}
	defer file.Close()
	if local {
		if err := checkOwn(file); err != nil {
			return read, fmt.Errorf("%s of the working directory is not used: %w", path, err)
		}
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return read, err
	}
	if yaml.Unmarshal(text, &read.buses) != nil { // what it says may have a token in it
		return rcFile{}, fmt.Errorf("%s is not as it must be: YAML, with `bus:` and `token:` under each name", path)
	}
	return read, nil
}

// isPlain reports whether a URL sends what is asked in the clear, to another machine than this one.
func isPlain(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" {
		return false
	}
	address, err := netip.ParseAddr(cmp.Or(map[string]string{"localhost": "127.0.0.1"}[u.Hostname()], u.Hostname()))
	return err != nil || !address.Unmap().IsLoopback()
}
