package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"routemaster/internal/bus"
)

var limits = Limits{Events: 3, Data: 64}

const receivedAt = 1_700_000_000_000

func TestParseEvents(t *testing.T) {
	const first, second = `{"topic":"a","type":"noop","url":"https://x/1","t":`, `{"topic":"a","type":"update","url":"https://x/2","t":`
	for text, want := range map[string][]string{
		`{"type":"noop","url":"https://x/1"}`:                              {first + `1700000000000}`},
		`{"type":"noop","url":"https://x/1","timestamp":null,"data":null}`: {first + `1700000000000}`},
		` [{"type":"noop","url":"https://x/1"}]` + "\n":                    {first + `1700000000000}`},
		`{"data":{"b":[1,{}],"a":"x"},"timestamp":7,"url":"https:\/\/x/1","t\u0079pe":"n\u006fop"}`: {
			first + `7,"data":{"b":[1,{}],"a":"x"}}`},
		`[{"type":"noop","url":"https://x/1","data":"one"},{"type":"update","url":"https://x/2","timestamp":1.2e1}]`: {
			first + `1700000000000,"data":"one"}`, second + `12}`},
		`[{"type":"noop","url":"https://x/1","data":[false,0.5]},{"type":"update","url":"https://x/2"}]`: {
			first + `1700000000000,"data":[false,0.5]}`, second + `1700000000000}`},
	} {
		events, err := ParseEvents([]byte(text), "a", receivedAt, limits)
		require.NoError(t, err, text)
		require.Len(t, events, len(want), text)
		for i, event := range events {
			json, err := AppendEventJSON(nil, event)
			require.NoError(t, err)
			assert.Equal(t, want[i], string(json))
		}
	}
}

// manyNames are more members of an object than are compared one by one.
const manyNames = `"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"p":1,"q":1,"r":1,`

func TestParseEventsRefuses(t *testing.T) {
	event := func(members string) string { return `{"type":"noop","url":"https://x/",` + members + `}` }
	good := event(`"data":1`)
	for _, c := range []struct{ text, pointer, detail string }{
		{``, "", "line 1, column 1: it ends too early"},
		{`null`, "", "must be an object"},
		{`"noop"`, "", "must be an object"},
		{`[]`, "", "the array is empty; send 1 to 3 events"},
		{`[` + good + `,7]`, "/1", "must be an object"},
		{`[[]]`, "/0", "must be an object"},
		{`[` + strings.Repeat(good+",", 3) + good + `]`, "", "has more than 3 events; send them in several requests"},
		{`[` + good, "", "it ends too early"},
		{`[` + good + `]]`, "", "line 1, column"},
		{good + good, "", "something after the JSON value"},
		{good + "\n}", "", "line 2, column 1"},
		{`{}`, "/type", "is required"},
		{`{"type":"noop"}`, "/url", "is required"},
		{`{"type":null,"url":"https://x/"}`, "/type", "must be a string"},
		{`{"type":"noop","url":[]}`, "/url", "must be a string"},
		{`{"type":"noop","type":"noop"}`, "/type", `duplicate name "type"`},
		{`[` + good + `,{"url":"https://x/","url":"https://y/"}]`, "/1/url", `duplicate name "url"`},
		{event(`"Data":1`), "/Data", "is not known here; known are type, url, timestamp, data"},
		{event(`"a~/b":1`), "/a~0~1b", "known are"},
		{event(`"timestamp":"1"`), "/timestamp", "must be an integer"},
		{event(`"timestamp":1.5`), "/timestamp", "must be an integer of at most 64 bits"},
		{event(`"data":1e400`), "/data", "double precision"},
		{event(`"data":[18446744073709551616,1e400]`), "/data", "64 bits"},
		{event(`"data":"` + strings.Repeat("x", 63) + `"`), "/data", "takes 65 bytes as MessagePack; at most 64 are allowed"},
		{event(`"data":` + strings.Repeat("[", 101) + strings.Repeat("]", 101)), "/data", "nested more than 100 deep"},
		{`[` + good + `,` + event(`"data":1e400`) + `]`, "/1/data", "double precision"},
		{`[` + good + `,` + good + `,{"type":"new","url":"https://x/"}]`, "/2/type", "must be one of"},
		// A syntax error is reported before a value that is refused, and an event's type before its
		// data.
		{event(`"data":[1e400,]`), "", "line 1, column"},
		{event(`"data":]`), "", "line 1, column"},
		{event(`"data":{"a":1,"a":2}`), "/data/a", "duplicate"},
		{event(`"data":` + strings.Repeat("[", 102)), "", "line 1, column 144"},
		{event(`"data":` + strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999)), "/data", "nested more than 100 deep"},
		{event(`"data":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)), "", "line 1, column"},
		{event(`"data":{` + manyNames + `"a":2}`), "/data/a", "duplicate"},
		{event(`"data":{"a":1,"\u0061":2}`), "/data/a", "duplicate"},
		{event("\"data\":\"\xff\""), "", "invalid UTF-8"},
		{event(`"data":"\ud800"`), "", "surrogate"},
		{event(`"data":"` + "\n" + `"`), "", "line 1, column"},
		{event(`"data":01`), "", "line 1, column"},
		{event(`"timestamp":tru`), "", "line 1, column"},
		{`{"type":"new","data":1e400}`, "/type", "must be one of"},
		{`{"data":1e400,"type":"noop","url":"https://x/","x":1}`, "/x", "known are"},
	} {
		events, err := ParseEvents([]byte(c.text), "a", receivedAt, limits)
		assert.Empty(t, events)
		var invalid *bus.Invalid
		require.ErrorAs(t, err, &invalid, c.text)
		assert.Equal(t, c.pointer, invalid.Pointer, "%s: %s", c.text, invalid.Detail)
		assert.Contains(t, invalid.Detail, c.detail, c.text)
	}
}

func TestNoDataFitsWhereNoneIsAllowed(t *testing.T) {
	none := Limits{Events: 1}
	for text, valid := range map[string]bool{``: true, `,"data":null`: true, `,"data":0`: false, `,"data":""`: false} {
		_, err := ParseEvents([]byte(`{"type":"noop","url":"https://x/"`+text+`}`), "a", receivedAt, none)
		assert.Equal(t, valid, err == nil, "%s: %v", text, err)
	}
}

func TestParseInteger(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "7": 7, "7.0": 7, "0.7e1": 7, "-70E-1": -7, "1795302000000.0": 1_795_302_000_000, "0e999": 0, "0.0": 0, "1e18": 1e18,
		"9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63, "922337203685477580.7e1": 1<<63 - 1,
	} {
		got, ok := ParseInteger(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"0.5", "1e19", "15e-1", "9223372036854775808", "9223372036854775808.0", "1e999999999999999999999"} {
		_, ok := ParseInteger(text)
		assert.False(t, ok, text)
	}
}

// The library writes the same bytes.
func TestMessagePackIsThatOfTheLibrary(t *testing.T) {
	var numbers []int64
	for shift := range 64 {
		n := int64(1) << shift
		numbers = append(numbers, n-2, n-1, n, n+1, -n-1, -n, -n+1)
	}
	library := func(encode func(*msgpack.Encoder) error) string {
		var buf bytes.Buffer
		require.NoError(t, encode(msgpack.NewEncoder(&buf)))
		return buf.String()
	}
	for _, n := range numbers {
		assert.Equal(t, library(func(e *msgpack.Encoder) error { return e.EncodeInt(n) }), string(appendInt(nil, n)), "%d", n)
		u := uint64(n)
		assert.Equal(t, library(func(e *msgpack.Encoder) error { return e.EncodeUint(u) }), string(appendUint(nil, u)), "%d", u)
	}
	for _, n := range []int{0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536} {
		text := strings.Repeat("x", n)
		assert.Equal(t, library(func(e *msgpack.Encoder) error { return e.EncodeString(text) }), string(appendString(nil, text)), "%d", n)
		assert.Equal(t, library(func(e *msgpack.Encoder) error { return e.EncodeArrayLen(n) }), string(appendLength(nil, arrayCodes, n)), "%d", n)
		assert.Equal(t, library(func(e *msgpack.Encoder) error { return e.EncodeMapLen(n) }), string(appendLength(nil, mapCodes, n)), "%d", n)
	}
	assert.Equal(t, library(func(e *msgpack.Encoder) error { return e.EncodeFloat64(-0.1) }), string(appendFloat(nil, -0.1)))
	assert.Equal(t, library(func(e *msgpack.Encoder) error {
		return e.EncodeMulti(true, false, nil)
	}), string(appendNil(appendBool(appendBool(nil, true), false))))
}

// An accepted publish can be delivered; a refusal is an Invalid, and says that the text is not JSON
// only if jsontext finds so too.
func FuzzParseEvents(f *testing.F) {
	for _, seed := range []string{
		usualText, "[" + usualText + "," + usualText + "]", `{"type":"noop","url":"https://x/","data":[1,{"a":1e5}],"timestamp":1.0}`, `[]`, `{`,
		`{"type":"noop","url":"https://x/","data":{` + manyNames + `"s":["\ud83d\ude00",null,"é"]}}`, "{\"data\":\"\xff\"}", `{"data":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		events, err := ParseEvents(text, "a", receivedAt, limits)
		if err != nil {
			var invalid *bus.Invalid
			require.ErrorAs(t, err, &invalid)
			if strings.Contains(invalid.Detail, "is not valid JSON") {
				require.False(t, jsontext.Value(text).IsValid(), invalid.Detail)
			}
			return
		}
		require.True(t, jsontext.Value(text).IsValid())
		for _, event := range events {
			json, err := AppendEventJSON(nil, event)
			require.NoError(t, err)
			require.True(t, jsontext.Value(json).IsValid(), "%s", json)
		}
	})
}
