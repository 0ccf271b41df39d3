package condition_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/condition"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"metadata.no and\n12h has passed since system.entered_state and system.time>=18:30", `{
			"condition": "metadata.no and\n12h has passed since system.entered_state and system.time>=18:30", "value": false, "parts": [
			{"text": "metadata.no", "value": false},
			{"text": "12h has passed since system.entered_state", "value": false},
			{"text": "system.entered_state", "value": "2026-11-23T08:05:09.000Z"},
			{"text": "system.time >= 18:30", "value": false},
			{"text": "system.time", "value": "14:05:09"}]}`},
		{"metadata.five = 5 and not (not metadata.five=5 # twice\n or not metadata.no)", `{
			"condition": "metadata.five = 5 and not (not metadata.five=5 # twice\n or not metadata.no)", "value": false, "parts": [
			{"text": "metadata.five = 5", "value": true},
			{"text": "metadata.five", "value": 5},
			{"text": "not metadata.five = 5", "value": false},
			{"text": "not metadata.no", "value": true},
			{"text": "metadata.no", "value": false}]}`},
		{"not (metadata.yes) or (1 = 1 or metadata.x) = metadata.one", `{
			"condition": "not (metadata.yes) or (1 = 1 or metadata.x) = metadata.one", "value": true, "parts": [
			{"text": "not (metadata.yes)", "value": false},
			{"text": "metadata.yes", "value": true},
			{"text": "(1 = 1 or metadata.x) = metadata.one", "value": true},
			{"text": "metadata.x", "value": null},
			{"text": "metadata.one", "value": 1}]}`},
		{"metadata.text < 5 or metadata.yes", `{
			"condition": "metadata.text < 5 or metadata.yes", "value": null,
			"error": "line 1, column 1: there is no order between a string and a number: metadata.text < 5", "parts": [
			{"text": "metadata.text < 5", "value": null,
				"error": "line 1, column 1: there is no order between a string and a number: metadata.text < 5"},
			{"text": "metadata.text", "value": "gold"},
			{"text": "metadata.yes", "value": true}]}`},
		{"feeds.prefs.limit = 3 and feeds.other.on", `{
			"condition": "feeds.prefs.limit = 3 and feeds.other.on", "value": null, "unknown": true, "parts": [
			{"text": "feeds.prefs.limit = 3", "value": true},
			{"text": "feeds.prefs.limit", "value": 3},
			{"text": "feeds.other.on", "value": null, "unknown": true}]}`},
		{"metadata.no and feeds.other.on = 1", `{
			"condition": "metadata.no and feeds.other.on = 1", "value": false, "parts": [
			{"text": "metadata.no", "value": false},
			{"text": "feeds.other.on = 1", "value": null, "unknown": true},
			{"text": "feeds.other.on", "value": null, "unknown": true}]}`},
		{"true", `{"condition": "true", "value": true, "parts": [{"text": "true", "value": true}]}`},
		{`"x" is in metadata.none`, `{"condition": "\"x\" is in metadata.none", "value": false, "parts": [
			{"text": "\"x\" is in metadata.none", "value": false}, {"text": "metadata.none", "value": "[]"}]}`},
	} {
		got, err := json.Marshal(parse(t, c.source).Explain(environment(t)))
		require.NoError(t, err)
		assert.JSONEq(t, c.want, string(got))
	}
}

func TestPartsAreShort(t *testing.T) {
	env := environment(t)
	env.Metadata = decode(t, `{"list": [1, "a", null], "object": {"b": 1.50, "a": true}, "nested": [[1]], "eleven": [1,2,3,4,5,6,7,8,9,10,11],
		"deep": {"a": {"b": 1}}, "ä": "`+strings.Repeat("ä", 300)+`", "fits": "`+strings.Repeat("ä", 200)+`", "wide": ["`+strings.Repeat("x", 300)+`"], "long": `+
		strings.Repeat("7", 300)+`}`)
	for path, want := range map[string]any{
		"metadata.list": `[1,"a",null]`, "metadata.object": `{"a":true,"b":1.50}`, "metadata.nested": "a list of 1",
		"metadata.eleven": "a list of 11", "metadata.deep": "an object of 1", "metadata": "an object of 9",
		"metadata.ä":        strings.Repeat("ä", 199) + "…",
		"metadata.fits":     strings.Repeat("ä", 200),
		"metadata.wide":     `["` + strings.Repeat("x", 197) + "…",
		"metadata.long":     strings.Repeat("7", 199) + "…",
		"metadata.object.b": json.Number("1.50"),
	} {
		assert.Equal(t, []condition.Part{{Text: path, Value: want}}, parse(t, path).Explain(env).Parts)
	}
}
