package client

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestReadProblem(t *testing.T) {
	const body = `{"id":"a","title":"b\u0007","detail":"c","pointer":"/d","errors":[{"line":1,"column":2,"message":"e\n"}],
		"states":[{"machine":"m","state":"\u001bs","labels":7}],"status":400}`
	assert.Equal(t, problem{
		ID: "a", Title: "b ", Detail: "c", Pointer: "/d",
		Errors: []Fault{{1, 2, "e "}}, States: []StateLabels{{"m", " s", 7}},
	}, readProblem("application/problem+json; charset=utf-8", []byte(body)))
	assert.Zero(t, readProblem("application/json", []byte(body)))
	assert.Zero(t, readProblem("application/problem+json", []byte(body[:20])))
}
