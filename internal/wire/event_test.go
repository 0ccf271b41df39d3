package wire

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"routemaster/internal/bus"
)

// packEvent packs an event with this data.
func packEvent(data string, maxData int) (PackedEvent, error) {
	text := `{"type":"create","url":"https://a/","timestamp":1700000000123,"data":` + data + `}`
	events, err := ParseEvents([]byte(text), "t", 0, Limits{Events: 1, Data: maxData})
	if err != nil {
		return "", err
	}
	return events[0], nil
}

// The bytes are the output of Ruby's msgpack for ["e", {"t" => 1700000000123, "o" => "t", "y" =>
// "create", "u" => "https://a/", "d" => {"a" => 1}}].
func TestPackedBytes(t *testing.T) {
	packed, err := packEvent(`{"a":1}`, 64)
	require.NoError(t, err)
	assert.Equal(t, "92a165"+"85"+"a174cf0000018bcfe5687b"+"a16fa174"+"a179a6637265617465"+
		"a175aa68747470733a2f2f612f"+"a16481a16101", hex.EncodeToString([]byte(packed)))
	packed, err = packEvent("null", 0)
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(string(packed), "\xa1d\xc0"), "no data is nil")
}

func TestDataKeepsItsValue(t *testing.T) {
	for _, data := range []string{
		`{}`, `[]`, `""`, `0`, `true`, `false`, `1`, `-1`, `127`, `128`, `-32`, `-33`, `255`, `256`, `65536`, `-32769`,
		`9223372036854775807`, `-9223372036854775808`, `18446744073709551615`,
		`1.0`, `-0.5`, `1e+300`, `5e-324`, `0.1`, `123456789.0`,
		`{"z":1,"a":{"y":[1,2.0,null,"x"],"b":{}}}`,
		`"\u0000\"\\ü€😀"`, `[[[[[[]]]]]]`,
		`[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]`,
		`{` + manyNames + `"s":{"a":{"a":1},"b":[]}}`,
		`{"` + strings.Repeat("k", 300) + `":"` + strings.Repeat("v", 70_000) + `"}`,
	} {
		packed, err := packEvent(data, 1<<20)
		require.NoError(t, err, data)
		json, err := AppendEventJSON(nil, packed)
		require.NoError(t, err, data)
		assert.Equal(t, `{"topic":"t","type":"create","url":"https://a/","t":1700000000123,"data":`+data+`}`, string(json))
	}
	for data, want := range map[string]string{`null`: ``, `1e2`: `,"data":100.0`, `-0`: `,"data":0`, `"\u00e9\/"`: `,"data":"é/"`} {
		packed, err := packEvent(data, 64)
		require.NoError(t, err, data)
		json, err := AppendEventJSON(nil, packed)
		require.NoError(t, err, data)
		assert.Equal(t, `{"topic":"t","type":"create","url":"https://a/","t":1700000000123`+want+`}`, string(json))
	}
}

func TestDataThatIsRefused(t *testing.T) {
	for data, detail := range map[string]string{
		`18446744073709551616`: "has an integer beyond 64 bits",
		`-9223372036854775809`: "has an integer beyond 64 bits",
		`{"a":[1e400]}`:        "has a number beyond double precision",
		`[1e-400]`:             "has a number beyond double precision",
		strings.Repeat("[", 102) + strings.Repeat("]", 102): "nested more than 100 deep",
		`"` + strings.Repeat("x", 63) + `"`:                 "takes 65 bytes as MessagePack; at most 64 are allowed",
	} {
		_, err := packEvent(data, 64)
		var invalid *bus.Invalid
		require.ErrorAs(t, err, &invalid, data)
		assert.Equal(t, "/data", invalid.Pointer)
		assert.Contains(t, invalid.Detail, detail)
	}
}

// The Ruby original stored such events, and other writers may; ParseEvents never makes them.
func TestAppendEventJSONReadsForeignEvents(t *testing.T) {
	pack := func(fields ...any) PackedEvent {
		var buf bytes.Buffer
		enc := msgpack.NewEncoder(&buf)
		require.NoError(t, enc.EncodeArrayLen(2))
		require.NoError(t, enc.EncodeString("e"))
		require.NoError(t, enc.EncodeMapLen(len(fields)/2))
		for _, field := range fields {
			require.NoError(t, enc.Encode(field))
		}
		return PackedEvent(buf.String())
	}
	whole := func(extra ...any) PackedEvent {
		return pack(append([]any{"u", "https://a/", "o", "t", "y", "noop"}, extra...)...)
	}
	for want, packed := range map[string]PackedEvent{
		`{"topic":"t","type":"noop","url":"https://a/","t":1.5}`:             whole("t", 1.5),
		`{"topic":"t","type":"noop","url":"https://a/","t":-3,"data":"x"}`:   whole("t", -3, "d", []byte("x")),
		`{"topic":"t","type":"noop","url":"https://a/","t":0,"data":[null]}`: whole("d", []any{math.NaN()}, "t", 0, "x", "new"),
	} {
		json, err := AppendEventJSON(nil, packed)
		require.NoError(t, err)
		assert.Equal(t, want, string(json))
	}
	for _, broken := range []PackedEvent{
		"", "\xc1", "\x92\xa1e", "\x92\xa1x\x80", whole(), whole("t", 1)[:20], pack("t", 1), "\x92\xa1e\x81\x01\x01",
	} {
		dst, err := AppendEventJSON([]byte("before"), broken)
		require.Error(t, err, "%x", broken)
		assert.Equal(t, "before", string(dst))
	}
}

// Whatever JSON goes in comes out as JSON of the same value, and packing that again gives the
// same bytes.
func FuzzDataRoundTrip(f *testing.F) {
	for _, seed := range []string{`null`, `{"a":[1,-1,1.5,"x",true,{}]}`, `"\ud83d\ude00"`, `1e5`, `[[[]]]`, `-0`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !jsontext.Value(data).IsValid() {
			return
		}
		packed, err := packEvent(string(data), 1<<20)
		if err != nil {
			return
		}
		json, err := AppendEventJSON(nil, packed)
		require.NoError(t, err)
		require.True(t, jsontext.Value(json).IsValid(), "%s", json)
		_, rest, found := strings.Cut(string(json), `,"data":`)
		again, err := packEvent(cmp.Or(strings.TrimSuffix(rest, "}"), "null"), 1<<20)
		require.NoError(t, err)
		require.Equal(t, packed, again, "without data: %v", !found)
	})
}

func FuzzAppendEventJSON(f *testing.F) {
	packed, err := packEvent(`{"a":[1]}`, 64)
	require.NoError(f, err)
	f.Add([]byte(packed))
	f.Fuzz(func(t *testing.T, data []byte) {
		json, err := AppendEventJSON(nil, PackedEvent(data))
		if err == nil {
			require.True(t, jsontext.Value(json).IsValid(jsontext.AllowDuplicateNames(true)), "%s", json)
		}
	})
}

func TestDeepNestingIsUnreadableAndHarmless(t *testing.T) {
	packed, err := packEvent("null", 64)
	require.NoError(t, err)
	head := strings.TrimSuffix(string(packed), "\xc0")
	_, err = AppendEventJSON(nil, PackedEvent(head+strings.Repeat("\x91", 1000)+"\xc0"))
	require.NoError(t, err)
	for _, deep := range []string{strings.Repeat("\x91", 1001) + "\xc0", strings.Repeat("\x91", 8_000_000) + "\xc0", strings.Repeat("\x81\xa1k", 2000) + "\xc0"} {
		json, err := AppendEventJSON([]byte("["), PackedEvent(head+deep))
		require.ErrorContains(t, err, "nested more than 1000 deep")
		require.Equal(t, "[", string(json))
	}
}

// TestAGapNoticeIsAnEvent reads an event as scripts write it, which the original cannot.
func TestAGapNoticeIsAnEvent(t *testing.T) {
	const notice = PackedEvent("\x92\xa1e\x85\xa1t\xcf\x00\x00\x01\x8b\xcf\xe5\x68\x00\xa1o\xa0\xa1y\xa3gap\xa1u\xa0\xa1d\x81\xa6events\x02")
	text, err := AppendEventJSON(nil, notice)
	require.NoError(t, err)
	assert.Equal(t, `{"topic":"","type":"gap","url":"","t":1700000000000,"data":{"events":2}}`, string(text))
	require.ErrorContains(t, CheckForOriginal(notice), "it tells of a gap")
}
