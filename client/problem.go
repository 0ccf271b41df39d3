package client

import (
	"encoding/json"
	"mime"
	"strconv"
	"strings"
)

// problem is the document of a bus that says why it refused a request (RFC 9457). Its texts have no
// control characters.
type problem struct {
	ID, Title, Detail, Pointer string
	Errors                     []Fault
	States                     []StateLabels
}

// Fault is an error at a place of a text. Line and Column count from 1.
type Fault struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// StateLabels is how many labels are in a state of a machine.
type StateLabels struct {
	Machine string `json:"machine"`
	State   string `json:"state"`
	Labels  int64  `json:"labels"`
}

// readProblem reads the body of a response, whose Content-Type is given. It is empty if the
// response is not from a bus: a proxy's may repeat the request's headers.
func readProblem(contentType string, body []byte) (p problem) {
	kind, _, _ := mime.ParseMediaType(contentType)
	if kind != "application/problem+json" || json.Unmarshal(body, &p) != nil {
		return problem{}
	}
	texts := []*string{&p.ID, &p.Title, &p.Detail, &p.Pointer}
	for i := range p.Errors {
		texts = append(texts, &p.Errors[i].Message)
	}
	for i := range p.States {
		texts = append(texts, &p.States[i].Machine, &p.States[i].State)
	}
	for _, text := range texts {
		*text = printable(*text)
	}
	return p
}

// printable replaces each character that cannot be printed by a space, so that the text can be
// logged or shown on a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
