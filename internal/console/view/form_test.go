package view

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/client/subscriber"
)

// shop is a subscriber with a few settings.
func shop() subscriber.Info {
	return subscriber.Info{
		Topics: []string{"parcels", "widgets"}, Callback: "https://shop.example/events", UUID: "secret", Timeout: 500, Max: 100,
		Lanes: 1, OrderKey: "/url", LogAttempts: "failures",
	}
}

func TestSettingsSendWhatWasChanged(t *testing.T) {
	for _, c := range []struct{ typed, want string }{
		{"", `{}`},
		{"max=100&uuid=&timeout=+500+", `{}`},
		{"max=200", `{"max":200}`},
		{"max=1%2C000", `{"max":1000}`},
		{"max=", `{"max":null}`},
		{"max=many", `{"max":"many"}`},
		{"max=99999999999999999999", `{"max":"99999999999999999999"}`},
		{"topics=parcels%0D%0Awidgets", `{}`},
		{"topics=parcels%0D%0A", `{"topics":["parcels"]}`},
		{"topics=", `{"topics":[]}`},
		{"strict_order=on", `{"strict_order":true}`},
		{"uuid=new", `{"uuid":"new"}`},
		{"dead_letters=on", `{"dead_letters":{}}`},
		{"dead_letters=on&dead_letters/attempts=5&dead_letters/age=x", `{"dead_letters":{"age":"x","attempts":5}}`},
		{"dead_letters/attempts=5", `{"dead_letters":null}`},
	} {
		typed, err := url.ParseQuery(c.typed)
		require.NoError(t, err)
		s := NewSettings(shop())
		s.Fill(typed)
		text, err := json.Marshal(s.Changes())
		require.NoError(t, err)
		assert.JSONEq(t, c.want, string(text), c.typed)
	}
}

func TestSettingsThatWereSwitchedOnAreSwitchedOff(t *testing.T) {
	i := shop()
	i.Partial, i.DeadLetters = true, &subscriber.DeadLetters{Attempts: 5, KeepAge: 60_000}
	s := NewSettings(i)
	s.Fill(url.Values{"dead_letters": {"on"}, "dead_letters/attempts": {"6"}})
	assert.Equal(t, map[string]any{"partial": false, "dead_letters": map[string]any{"attempts": int64(6), "keep_age": int64(60_000)}}, s.Changes())
	s.Fill(url.Values{})
	assert.Equal(t, map[string]any{"partial": false, "dead_letters": nil}, s.Changes())
}

func TestSettingsAreNotSavedOverOthers(t *testing.T) {
	digest := NewSettings(shop()).Digest
	s := NewSettings(shop())
	s.Fill(url.Values{"max": {"200"}})
	assert.False(t, s.Stale(digest))

	now := shop()
	now.Topics, now.MaxBytes = []string{"widgets"}, 5000
	s = NewSettings(now)
	s.Fill(url.Values{"topics": {"parcels\nwidgets"}, "max_bytes": {""}, "max": {"200"}})
	require.True(t, s.Stale(digest))
	assert.Equal(t, "widgets", s.Field("topics").Now)
	assert.Equal(t, "parcels\nwidgets", s.Field("topics").Value)
	assert.Equal(t, "5000", s.Field("max_bytes").Now)
	assert.Equal(t, "100", s.Field("max").Now)
	assert.Equal(t, "200", s.Field("max").Value)
	assert.Empty(t, s.Field("callback").Now)
	assert.Equal(t, NewSettings(now).Digest, s.Digest, "who has seen both may save")

	now = shop()
	now.Status.Queued, now.UUID = 7, "other"
	assert.Equal(t, NewSettings(shop()).Digest, NewSettings(now).Digest)
}

func TestErrorsStandAtTheirFields(t *testing.T) {
	for _, c := range []struct {
		refused     client.Error
		field, text string
	}{
		{client.Error{Status: 400, Pointer: "/max", Detail: "too many"}, "max", "too many"},
		{client.Error{Status: 400, Pointer: "/max_bytes", Detail: "too few"}, "max_bytes", "too few"},
		{client.Error{Status: 400, Pointer: "/topics/1", Detail: "no"}, "topics", "no"},
		{client.Error{Status: 400, Pointer: "/dead_letters/age", Detail: "old"}, "dead_letters/age", "old"},
		{client.Error{Status: 400, Pointer: "/dead_letters", Detail: "no"}, "dead_letters", "no"},
		{client.Error{Status: 400, Pointer: "/other", Detail: "no"}, "", "/other: no"},
		{client.Error{Status: 409, Title: "Conflict"}, "", "Conflict"},
	} {
		s := NewSettings(shop())
		with := s.With(&c.refused)
		wrong := map[string]string{}
		for _, field := range append(with.Fields, Field{Error: with.Error}) {
			if field.Error != "" {
				wrong[field.Name] = field.Error
			}
		}
		assert.Equal(t, map[string]string{c.field: c.text}, wrong)
		assert.Equal(t, s.Form, s.With(nil), "the form itself is as it was")
	}
}

func TestCommands(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Command("GET", Path("topics"), nil), `curl -u "$TOKEN:" "$BUS/topics"`},
		{Command("DELETE", Path("topics", "a b$HOME/`id`\"$(id)"), nil), `curl -u "$TOKEN:" -X DELETE "$BUS/topics/a%20b%24HOME%2F%60id%60%22%24%28id%29"`},
		{Command("POST", "/subscribers/$SUBSCRIBER/pause", map[string]any{}), `curl -u "$TOKEN:" "$BUS/subscribers/$SUBSCRIBER/pause" -d '{}'`},
		{Command("POST", "/subscriber/resume", nil), `curl -u "$TOKEN:" -X POST "$BUS/subscriber/resume"`},
		{Command("PATCH", "/subscriber", map[string]any{"note": "it's <b>"}), `curl -u "$TOKEN:" -X PATCH "$BUS/subscriber" -d '{"note":"it'\''s <b>"}'`},
	} {
		assert.Equal(t, c.want, c.got)
	}
}

func TestConfirm(t *testing.T) {
	assert.True(t, Confirm{}.Typed(""))
	for typed, ok := range map[string]bool{"search": true, "Search": false, " search": false, "": false} {
		assert.Equal(t, ok, Confirm{Name: "search"}.Typed(typed), typed)
	}
}

func TestIndentKeepsDigits(t *testing.T) {
	for text, want := range map[string]string{
		`{"n":9007199254740993,"x":1.0,"t":"</script>"}`: "{\n  \"n\": 9007199254740993,\n  \"x\": 1.0,\n  \"t\": \"</script>\"\n}",
		`{`: `{`,
	} {
		assert.Equal(t, want, Indent([]byte(text)))
	}
}
