package machines_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines"
)

func object(t *testing.T, text string) machines.Object {
	t.Helper()
	o, err := machines.ParseObject([]byte(text))
	require.NoError(t, err, text)
	return o
}

func TestMerge(t *testing.T) {
	for _, c := range []struct{ target, patch, removed, kept string }{ // with null removed, and kept
		{`{"a":{"b":1}}`, `{"a":{"c":2}}`, `{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":2}}`},
		{`{"a":{"b":1}}`, `{"a":{"b":2}}`, `{"a":{"b":2}}`, `{"a":{"b":2}}`},
		{`{"a":{"b":1}}`, `{"a":3}`, `{"a":3}`, `{"a":3}`},
		{`{"a":3}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{`{"a":[1,2]}`, `{"a":[3]}`, `{"a":[3]}`, `{"a":[3]}`},
		{`{"a":{"b":1,"c":2},"d":3}`, `{"a":{"b":null},"d":null}`, `{"a":{"c":2}}`, `{"a":{"b":null,"c":2},"d":null}`},
		{`{}`, `{"a":{"b":null}}`, `{"a":{}}`, `{"a":{"b":null}}`},
		{`{}`, `{"a":[null]}`, `{"a":[null]}`, `{"a":[null]}`},
		{`{"a":1}`, `{}`, `{"a":1}`, `{"a":1}`},
		{`{}`, `{"a":12345678901234567890,"b":1.50}`, `{"a":12345678901234567890,"b":1.50}`, `{"a":12345678901234567890,"b":1.50}`},
	} {
		target := object(t, c.target)
		for keepNull, want := range map[bool]string{false: c.removed, true: c.kept} {
			got, err := json.Marshal(target.Merge(object(t, c.patch), keepNull))
			require.NoError(t, err)
			assert.Equal(t, want, string(got), "%s and %s", c.target, c.patch)
		}
		assert.Equal(t, object(t, c.target), target, "it is not changed")
	}
}

func TestTriggersByMetadata(t *testing.T) {
	state := &machines.State{
		Gate: &machines.Gate{Triggers: []machines.Trigger{{Entry: true}, {Metadata: []string{"foo", "bar"}}, {Metadata: []string{"go"}}}},
		Next: &machines.Next{Default: "end"},
	}
	for patch, want := range map[string]string{
		`{"foo":{"bar":{}}}`: "metadata foo.bar", `{"foo":{"bar":null,"x":1}}`: "metadata foo.bar", `{"foo":{"bar":0},"go":1}`: "metadata foo.bar",
		`{"foo":{"bar":{"deeper":1}}}`: "metadata foo.bar", `{"go":false}`: "metadata go",
		`{"foo":{}}`: "", `{"foo":{"x":1}}`: "", `{"bar":{}}`: "", `{"foo.bar":1}`: "", `{"x":{"foo":{"bar":1}}}`: "", `{}`: "",
		`{"foo":null}`: "", `{"foo":7}`: "", `{"foo":"bar"}`: "", `{"foo":["bar"]}`: "", `{"foo":true}`: "",
	} {
		trigger, pending := state.TriggerOf("m", "l", &machines.Change{Patch: object(t, patch)})
		assert.Equal(t, want, trigger, patch)
		assert.Equal(t, want != "", pending, patch)
		trigger, pending = state.TriggerOf("m", "l", &machines.Change{Patch: object(t, patch), Event: &machines.Event{Topic: "users"}})
		assert.Equal(t, want != "", trigger == "topic users", "%s of an event: %q", patch, trigger)
		assert.Equal(t, want != "", pending, patch)
	}
	state.Next = nil
	trigger, _ := state.TriggerOf("m", "l", &machines.Change{Patch: object(t, `{"go":true}`)})
	assert.Empty(t, trigger, "an end")
}
