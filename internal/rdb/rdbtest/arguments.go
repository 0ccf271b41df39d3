package rdbtest

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	unpacked  = regexp.MustCompile(`local ([\w,\s]+?) =\s+unpack\(ARGV, 2, (\d+)\)`)
	wordStart = regexp.MustCompile(`([a-z])([A-Z])`)
)

// RequireArguments holds the names that a script gives its arguments, by one
// `local a, b = unpack(ARGV, 2, n)`, to the fields of a struct, and list to the order of both.
func RequireArguments[T any](t *testing.T, lua string, list func(T) []any) {
	t.Helper()
	var args T
	fields := reflect.ValueOf(&args).Elem()
	var names []string
	var values []any
	for i := range fields.NumField() {
		names = append(names, snakeCase(fields.Type().Field(i).Name))
		switch field := fields.Field(i); field.Kind() {
		case reflect.String:
			field.SetString(names[i])
		case reflect.Bool: // there is no other value than these two
			field.SetBool(i%2 == 0)
		case reflect.Slice:
			field.SetBytes([]byte(names[i]))
		case reflect.Interface:
			field.Set(reflect.ValueOf(names[i]))
		case reflect.Float64:
			field.SetFloat(float64(i))
		default:
			field.SetInt(int64(i))
		}
		values = append(values, fields.Field(i).Interface())
	}
	found := unpacked.FindStringSubmatch(lua)
	require.NotNil(t, found, "local ... = unpack(ARGV, 2, ...)")
	assert.Equal(t, names, strings.FieldsFunc(found[1], func(r rune) bool { return strings.ContainsRune(", \n", r) }), "the script's names")
	assert.Equal(t, strconv.Itoa(1+len(names)), found[2], "the last of them")
	assert.NotRegexp(t, `ARGV\[\d+\]`, lua, "an argument without a name")
	assert.Equal(t, values, list(args), "what the script is sent")
}

var nameBeside = regexp.MustCompile(`(?m)^\s.*, -- (\w+)$`)

// RequireReply holds the table of values, each with its name as a comment behind it, that a script
// returns after a text, to the fields of a struct in Go.
func RequireReply[T any](t *testing.T, lua, after string) {
	t.Helper()
	_, table, found := strings.Cut(lua, after)
	require.True(t, found, after)
	table, _, _ = strings.Cut(table, "\n\n")
	var names []string
	for _, beside := range nameBeside.FindAllStringSubmatch(table, -1) {
		names = append(names, beside[1])
	}
	RequireNames[T](t, names)
}

// RequireNames holds names in a script to the fields of a struct in Go.
func RequireNames[T any](t *testing.T, names []string) {
	t.Helper()
	var fields []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		fields = append(fields, snakeCase(field.Name))
	}
	assert.Equal(t, fields, names, "the script's names")
}

func snakeCase(name string) string {
	return strings.ToLower(wordStart.ReplaceAllString(name, "${1}_${2}"))
}
