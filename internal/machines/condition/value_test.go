package condition_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/condition"
)

func TestClock(t *testing.T) {
	at := time.Date(2026, 11, 23, 23, 30, 5, 999_999_999, time.UTC)
	assert.Equal(t, "23:30:05", condition.ClockOf(at).String())
	assert.Equal(t, "08:30:05", condition.ClockOf(at.In(time.FixedZone("Tokyo", 9*60*60))).String())
}

func TestOrderOfNumbers(t *testing.T) {
	ascending := []any{
		json.Number("-1e99999999999999999999"), json.Number("-1e400"), -1e300, json.Number("-9007199254740993"), int64(-9007199254740992),
		-1, json.Number("-1e-400"), false, 5e-324, json.Number("0.1"), json.Number("0.10000000000000000000001"), true, 1.5, json.Number("1.6e0"),
		9, 10, uint64(9007199254740992), json.Number("9007199254740993"), uint64(1 << 63), 1e300, json.Number("1e400"), json.Number("1.1e400"),
	}
	for i, a := range ascending {
		for j, b := range ascending {
			sign, ok := condition.Order(a, b)
			require.True(t, ok)
			switch {
			case i < j:
				assert.Negative(t, sign, "%v and %v", a, b)
			case i > j:
				assert.Positive(t, sign, "%v and %v", a, b)
			default:
				assert.Zero(t, sign, "%v", a)
			}
		}
	}
	for _, text := range []string{"", "-", ".", "x", "1x", "e5", "1e", "1ex", "1.2.3", "--1", "0x10", "NaN", "Inf"} {
		_, ok := condition.Order(json.Number(text), 0)
		assert.False(t, ok, "%q", text)
	}
}

// FuzzOrder compares numbers as package math/big does.
func FuzzOrder(f *testing.F) {
	for _, pair := range [][2]string{
		{"0", "-0"}, {"1", "1.0"}, {"0.1", "1e-1"}, {"-12.50", "-125e-1"}, {"100", "99.99"}, {"1e30", "1E+30"}, {"-1", "1"}, {"0.010", "0.01001"},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := rational(a), rational(b)
		if x == nil || y == nil {
			return
		}
		sign, ok := condition.Order(json.Number(a), json.Number(b))
		require.True(t, ok)
		require.Equal(t, x.Cmp(y), big.NewInt(int64(sign)).Sign())
		require.Equal(t, x.Cmp(y) == 0, condition.Equal(json.Number(a), json.Number(b)))
	})
}

// rational is a JSON number whose exponent has at most three digits, or nil.
func rational(text string) *big.Rat {
	i := strings.IndexAny(text, "eE")
	if !json.Valid([]byte(text)) || strings.Trim(text, "0123456789+-.eE") != "" || i >= 0 && len(text)-i > 5 {
		return nil
	}
	number, _ := new(big.Rat).SetString(text)
	return number
}

// FuzzEqual requires that a value equals itself, and that the order of two does not matter.
func FuzzEqual(f *testing.F) {
	for _, pair := range [][2]string{
		{`null`, `false`}, {`[1, {"a": true}]`, `[1.0, {"a": 1}]`}, {`{"a": null}`, `{"b": null}`}, {`"1"`, `1`}, {`1e999`, `0`},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := decodeValue(a), decodeValue(b)
		require.True(t, condition.Equal(x, x))
		require.True(t, condition.Equal(y, y))
		equal := condition.Equal(x, y)
		require.Equal(t, equal, condition.Equal(y, x))
		if equal {
			require.Equal(t, condition.Truth(x), condition.Truth(y))
		}
		first, ok := condition.Order(x, y)
		second, also := condition.Order(y, x)
		require.Equal(t, ok, also)
		if ok {
			require.Equal(t, equal, first == 0)
			require.Equal(t, big.NewInt(int64(first)).Sign(), -big.NewInt(int64(second)).Sign())
		}
	})
}

// decodeValue is a JSON value, null if the text is none.
func decodeValue(text string) (v any) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&v) != nil {
		return nil
	}
	return v
}
