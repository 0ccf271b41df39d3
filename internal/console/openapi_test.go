package console

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// described reads the description of the bus's API.
func described(t *testing.T) (text []byte, a API) {
	t.Helper()
	text, err := os.ReadFile("../web/openapi.json")
	require.NoError(t, err)
	a, err = ParseAPI(text)
	require.NoError(t, err)
	return text, a
}

func TestEachOperationIsShownOnce(t *testing.T) {
	text, a := described(t)
	var all struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	require.NoError(t, json.Unmarshal(text, &all))
	var want, got []string
	for path, methods := range all.Paths {
		for method, o := range methods {
			want = append(want, strings.ToUpper(method)+" "+path+" "+o.OperationID)
		}
	}
	for _, g := range a.Groups {
		for _, o := range g.Operations {
			got = append(got, o.Method+" "+o.Path+" "+o.ID)
			assert.NotEmpty(t, o.Answers, o.ID)
			assert.NotEmpty(t, o.Summary, o.ID)
			for _, p := range append(o.Parameters, o.Body...) {
				assert.NotEmpty(t, p.Name, o.ID)
			}
			for _, answer := range o.Answers {
				assert.NotEmpty(t, answer.Summary, o.ID)
			}
		}
	}
	assert.ElementsMatch(t, want, got)
}

func TestOperationsSayWhatTheyTake(t *testing.T) {
	_, a := described(t)
	found := a.Filter("post /topics/{topic}")
	require.Len(t, found.Groups, 1)
	o := found.Groups[0].Operations[0]
	assert.Equal(t, "topic", o.Parameters[0].Name)
	assert.Contains(t, o.Command, `"$BUS/topics/{topic}" -d '`)
	assert.Contains(t, o.Command, `"type":"create"`)
	assert.Equal(t, []string{"type", "url"}, []string{o.Body[0].Name, o.Body[1].Name}, "required fields come first")
	assert.Equal(t, `"create" or "update" or "delete" or "noop"`, o.Body[0].Type)

	health := a.Filter("GET /health/ping.json").Groups[0].Operations[0]
	assert.True(t, health.Open)
	assert.Equal(t, `curl "$BUS/health/ping.json"`, health.Command)
	assert.Empty(t, a.Filter("no such thing").Groups)
	assert.Equal(t, a, a.Filter(" "))
}
