package problem_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/client/internal/problem"
)

func TestRead(t *testing.T) {
	const body = `{"id":"a","title":"b\u0007","detail":"c","pointer":"/d","errors":[{"line":1,"column":2,"message":"e\n"}],
		"states":[{"machine":"m","state":"\u001bs","labels":7}],"status":400}`
	assert.Equal(t, problem.Problem{
		ID: "a", Title: "b ", Detail: "c", Pointer: "/d",
		Errors: []problem.Fault{{1, 2, "e "}}, States: []problem.StateLabels{{"m", " s", 7}},
	}, problem.Read("application/problem+json; charset=utf-8", []byte(body)))
	assert.Zero(t, problem.Read("application/json", []byte(body)))
	assert.Zero(t, problem.Read("application/problem+json", []byte(body[:20])))
}
