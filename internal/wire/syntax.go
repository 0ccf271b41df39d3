package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"routemaster/internal/bus"
)

// ExpectEnd makes sure that nothing follows the value that was read last. The error is a
// [bus.Invalid] if another value follows, else jsontext's.
func ExpectEnd(json *jsontext.Decoder) error {
	_, err := json.ReadToken()
	if err == nil {
		return bus.Invalidf("", "there is something after the JSON value; send one value")
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// SyntaxError turns an error of jsontext into a [bus.Invalid], which says where text stops
// being JSON. It points at a name that is there twice.
func SyntaxError(text []byte, err error) error {
	offset, reason, pointer := len(text), "it ends too early", jsontext.Pointer("")
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset = int(syntactic.ByteOffset)
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			pointer = syntactic.JSONPointer
			reason = fmt.Sprintf("duplicate name %.64q in an object; send it once", pointer.LastToken())
		case !errors.Is(err, io.ErrUnexpectedEOF):
			reason = syntactic.Err.Error()
		}
	}
	before := text[:min(offset, len(text))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + len(before) - (1 + bytes.LastIndexByte(before, '\n'))
	return bus.Invalidf(string(pointer), "the body is not valid JSON at line %d, column %d: %s", line, column, reason)
}
