package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
)

// readJobData reads a flag with JSON, @FILE, or - for the standard input. It returns nil if the
// flag was not given. Errors are [usageError]s.
func readJobData(c *call, flag string) (json.RawMessage, error) {
	text, err := readFlag(c, flag)
	if text == nil || err != nil {
		return nil, err
	}
	return checkJobData(flag, text)
}

// readFlag reads a flag with a text, @FILE, or - for the standard input. It returns nil if the flag
// was not given. Errors are [usageError]s.
func readFlag(c *call, flag string) (text []byte, err error) {
	if !c.given(flag) {
		return nil, nil
	}
	value := c.text(flag)
	text = []byte(value)
	if name, isFile := strings.CutPrefix(value, "@"); isFile {
		text, err = readFile(name)
	} else if value == "-" {
		text, err = readUpTo(c.InOrStdin())
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("--%s: %w", flag, err)}
	}
	return append([]byte{}, text...), nil
}

// maxDataText is how many bytes a file with data may have, spaces included; the bus takes less.
const maxDataText = 1 << 20

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readUpTo(file)
}

// readUpTo reads a text of at most [maxDataText] bytes, and fails if there are more.
func readUpTo(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxDataText+1))
	if len(text) > maxDataText {
		return nil, fmt.Errorf("at most %d bytes are read, and there are more", maxDataText)
	}
	return text, err
}

// checkJobData refuses a text that the bus would not take as a job's data, with a [usageError].
func checkJobData(flag string, text []byte) (json.RawMessage, error) {
	data := jsontext.Value(bytes.Clone(text))
	if !data.IsValid() || data.Compact() != nil { // spaces are not sent
		return nil, wrongFlag(flag, `a JSON value without duplicate names, such as {"stock":3} or "text"; @FILE reads it from a file, - from the standard input`)
	}
	switch {
	case len(data) > jobs.MaxData:
		return nil, wrongFlag(flag, fmt.Sprintf("at most %d bytes; it has %d", jobs.MaxData, len(data)))
	case bus.IsTooDeep(data):
		return nil, wrongFlag(flag, fmt.Sprintf("nested at most %d deep", bus.MaxDepth))
	}
	return json.RawMessage(data), nil
}

// detailOf is the text of an error, without its pointer.
func detailOf(err error) string {
	if invalid, ok := errors.AsType[*bus.Invalid](err); ok {
		return invalid.Detail
	}
	return err.Error()
}
