package rest

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

type decoded struct {
	Name  string          `json:"name"`
	List  []bus.TopicName `json:"list"`
	Text  *string         `json:"text"`
	Count *int64          `json:"count"`
	Short int16           `json:"short"`
}

var strict = json.RejectUnknownMembers(true)

func TestDecode(t *testing.T) {
	text, count := "", int64(-7)
	for sent, want := range map[string]decoded{
		`{}`:                                  {},
		` {"name":"é","list":[]} `:            {Name: "é", List: []bus.TopicName{}},
		`{"text":null,"count":null}`:          {},
		`{"text":"","count":-7}`:              {Text: &text, Count: &count},
		`{"n\u0061me":"\"","list":["a","b"]}`: {Name: `"`, List: []bus.TopicName{"a", "b"}},
	} {
		var got decoded
		require.NoError(t, decode([]byte(sent), &got, strict), sent)
		assert.Equal(t, want, got, sent)
	}
}

func TestDecodeRefuses(t *testing.T) {
	const notAnInteger = "must be an integer of at most 64 bits, without a fraction or an exponent"
	for _, c := range []struct{ sent, pointer, detail string }{
		{`null`, "", "must be an object"},
		{`[]`, "", "must be an object"},
		{`["a`, "", "must be an object"},
		{`{"name":null}`, "/name", "must be a string"},
		{`{"name":7}`, "/name", "must be a string"},
		{`{"name":[7`, "/name", "must be a string"},
		{`{"list":null}`, "/list", "must be an array"},
		{`{"list":"a"}`, "/list", "must be an array"},
		{`{"list":["a",null]}`, "/list/1", "must be a string"},
		{`{"list":["a",{}]}`, "/list/1", "must be a string"},
		{`{"text":true}`, "/text", "must be a string"},
		{`{"count":"7"}`, "/count", "must be an integer"},
		{`{"count":7.0}`, "/count", notAnInteger},
		{`{"count":7e1}`, "/count", notAnInteger},
		{`{"count":9223372036854775808}`, "/count", notAnInteger},
		{`{"short":32768}`, "/short", "must be an integer of at most 16 bits, without a fraction or an exponent"},
		{`{"short":"7"}`, "/short", "must be an integer"},
		{`{"Name":"a"}`, "/Name", "is not known here; known are name, list, text, count, short"},
		{`{"a~/":1}`, "/a~0~1", "is not known here; known are name, list, text, count, short"},
		{`{"name":"a","name":"b"}`, "/name", `the body is not valid JSON at line 1, column 13: duplicate name "name" in an object; send it once`},
		{`{"name":"a"}{}`, "", "there is something after the JSON value; send one value"},
		{"{}\n}", "", "the body is not valid JSON at line 2, column 1: invalid character '}' at start of value"},
		{`{"name":"a"`, "", "the body is not valid JSON at line 1, column 12: it ends too early"},
		{"{\"name\":\"\xff\"}", "", "the body is not valid JSON at line 1, column 10: invalid UTF-8"},
		{`{"name":}`, "", "the body is not valid JSON at line 1, column 9: missing value after object name"},
	} {
		var into decoded
		err := decode([]byte(c.sent), &into, strict)
		var invalid *bus.Invalid
		require.ErrorAs(t, err, &invalid, c.sent)
		assert.Equal(t, bus.Invalid{Pointer: c.pointer, Detail: c.detail}, *invalid, c.sent)
	}
}

func TestDecodeNullableAndOthers(t *testing.T) {
	type members struct {
		Text   Nullable[string]          `json:"text"`
		Count  Nullable[int64]           `json:"count"`
		Others map[string]jsontext.Value `json:",embed"`
	}
	text, count := "a", int64(7)
	for sent, want := range map[string]members{
		`{}`:                         {},
		`{"text":null,"count":null}`: {Text: Nullable[string]{Sent: true}, Count: Nullable[int64]{Sent: true}},
		`{"text":"a","count":7}`:     {Text: Nullable[string]{true, &text}, Count: Nullable[int64]{true, &count}},
		`{"x": [1, null] ,"y":null}`: {Others: map[string]jsontext.Value{"x": jsontext.Value("[1, null]"), "y": jsontext.Value("null")}},
	} {
		var got members
		require.NoError(t, decode([]byte(sent), &got, strict), sent)
		assert.Equal(t, want, got, sent)
	}
	for _, c := range []struct{ sent, pointer, detail string }{
		{`{"text":7}`, "/text", "must be a string"},
		{`{"count":"7"}`, "/count", "must be an integer"},
		{`{"count":7.5}`, "/count", "must be an integer of at most 64 bits"},
		{`{"x":{"a":1,"a":2}}`, "/x/a", `duplicate name "a"`},
		{`{"x":1,"x":1}`, "/x", `duplicate name "x"`},
	} {
		var into members
		var invalid *bus.Invalid
		require.ErrorAs(t, decode([]byte(c.sent), &into, strict), &invalid, c.sent)
		assert.Equal(t, c.pointer, invalid.Pointer, c.sent)
		assert.Contains(t, invalid.Detail, c.detail, c.sent)
	}
}
