package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"routemaster/internal/outbound"
)

const (
	// maxReport bounds an answer that is a report, in bytes.
	maxReport = 4096
	// maxExcerpt is how many bytes of another answer are kept to show why an attempt failed.
	maxExcerpt = 256
)

// keepReport is how much of an answer is kept: see [outbound.Request].
func keepReport(status int) int {
	switch {
	case status == http.StatusOK:
		return maxReport
	case status/100 == 2:
		return 0
	}
	return maxExcerpt
}

// readReport reads a report that a service gives as its answer. An answer need not be one: then the
// status is empty. The error says why an answer that seems to be meant as a report was not read, in
// words that follow "the report in the answer".
func readReport(a outbound.Attempt) (r Report, err error) {
	text := bytes.TrimLeft(bytes.TrimPrefix(a.Body, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(text) > 0 && text[0] != '{' {
		return r, nil
	}
	if a.Status != http.StatusOK || !a.BodyComplete || len(text) == 0 {
		return r, a.BodyErr
	}
	// Members of any kind, as other answers may have them. Names match in any case, as in requests.
	var members struct{ Status, Retryable, Error any }
	if err := json.Unmarshal(text, &members); err != nil {
		return r, fmt.Errorf("is no JSON object: %w", err)
	}
	status, _ := members.Status.(string)
	switch Status(strings.ToLower(status)) {
	case Succeeded, Failed:
	default:
		return r, nil
	}
	final, err := isFinal(members.Retryable)
	if status != strings.ToLower(status) {
		err = fmt.Errorf("has the status %q; write it in small letters", status)
	}
	if err != nil {
		return r, err
	}
	r.Status, r.Final = Status(status), final
	r.Error, _ = members.Error.(string) // another value is no reason to miss the report
	return r, nil
}

// isFinal reads the member retryable of a report.
func isFinal(retryable any) (bool, error) {
	switch value := retryable.(type) {
	case nil:
		return false, nil
	case bool:
		return !value, nil
	}
	return false, errors.New("has a retryable that is neither true nor false")
}
