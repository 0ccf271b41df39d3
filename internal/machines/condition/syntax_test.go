package condition_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/condition"
)

func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct{ source, reason, marked string }{
		{"(a = b", "this parenthesis is not closed", "("},
		{"((a) = b", "this parenthesis is not closed", "("},
		{"a = b)", "no parenthesis is open here", ")"},
		{"()", "a value should be here, not )", ")"},
		{")", "a value should be here, not )", ")"},
		{"", "the condition is empty: write true for a gate that is always open", ""},
		{" \n ", "the condition is empty: write true for a gate that is always open", ""},
		{"# only a comment", "the condition is empty: write true for a gate that is always open", ""},
		{"true and", "the condition ends where a value should follow", ""},
		{"true and # more\n", "the condition ends where a value should follow", ""},
		{"not", "the condition ends where a value should follow", ""},
		{"a =", "the condition ends where a value should follow", ""},
		{"and true", "a value should be here, not and", "and"},
		{"= 4", "a value should be here, not =", "="},
		{"a = not b", "a value should be here, not not", "not"},
		{"a = = b", "a value should be here, not =", "="},

		{"a == b", "there is no ==: write =", "=="},
		{"a != b", "there is no !=: write /=", "!="},
		{"a <> b", "there is no <>: write /=", "<>"},
		{"a => b", "there is no =>: write >=", "=>"},
		{"a =< b", "there is no =<: write <=", "=<"},
		{"a && b", "there is no &&: write and", "&&"},
		{"a || b", "there is no ||: write or", "||"},
		{"!a", "there is no !: write not", "!"},
		{"a << b", "there is no <<: comparisons are = /= < > <= >=", "<<"},
		{"a / b", "there is no /: comparisons are = /= < > <= >=", "/"},
		{"a ** b", "there is no **: conditions do not calculate", "**"},
		{"a + b", "there is no +: conditions do not calculate", "+"},
		{"5 - 3", "there is no -: conditions do not calculate", "-"},
		{"a = b = c", "a test ends before this: join two by and, or put the first in parentheses", "="},
		{"1 < 2 is defined", "a test ends before this: join two by and, or put the first in parentheses", "is"},
		{"a is defined is defined", "a test ends before this: join two by and, or put the first in parentheses", "is"},

		{"TRUE", "keywords are in lower case: write true", "TRUE"},
		{"a And b", "keywords are in lower case: write and", "And"},
		{"Not a", "keywords are in lower case: write not", "Not"},
		{"a Is defined", "keywords are in lower case: write is", "Is"},
		{"a b", "and or or is missing before this", "b"},
		{"a 5", "and or or is missing before this", "5"},
		{"a (b)", "and or or is missing before this", "("},
		{"3 days has passed since b", "a duration is one word, with the units d, h, m and s: 3d, not 3 days", "days"},
		{"12 H has passed since b", "a duration is one word, with the units d, h, m and s: 3d, not 3 days", "H"},
		{"a days", "and or or is missing before this", "days"},
		{"(a b)", "and or or is missing before this", "b"},

		{"this is", "the condition ends where a phrase (is defined, is in, or has passed since) should follow", ""},
		{"a is not", "the condition ends where a phrase (is defined, is in, or has passed since) should follow", ""},
		{"a is = b", "a phrase (is defined, is in, or has passed since) should be here, not =", "="},
		{"a is since b", "a phrase (is defined, is in, or has passed since) should be here, not since", "since"},
		{"a is true", "a verb does not compare: write = or /= instead of it", "true"},
		{"a is \"x\"", "a verb does not compare: write = or /= instead of it", `"x"`},
		{"a is (b)", "a verb does not compare: write = or /= instead of it", "("},
		{"a is not null", "a verb does not compare: write is defined, is not defined, or = null", "null"},
		{"a is metadata.b", "a verb does not compare: write = or /= or is in", "metadata.b"},
		{"a is set", `there is no "set": write is defined`, "set"},
		{"a is Defined", `there is no "Defined": write is defined`, "Defined"},
		{"a is missing", `there is no "missing": write is not defined`, "missing"},
		{"a is not missing", `there is no "missing": write is defined, is in, or has passed since`, "missing"},
		{"a is not set", `there is no "set": write is defined`, "set"},
		{"12h has elapsed since b", `there is no "elapsed": write has passed since`, "elapsed"},
		{"a is one in b", `there is no "one": write is in`, "one"},
		{"a is definde", `there is no "definde": write is defined, is in, or has passed since`, "definde"},
		{"a in b", "a verb is missing: write is in", "in"},
		{"a defined", "a verb is missing: write is defined", "defined"},
		{"a not in b", "not stands before the whole test, as in not a = b, or behind a verb, as in a is not in b", "not"},
		{"12h passed since a", "write it in full: has passed since", "passed"},
		{"12h since a", "write it in full: has passed since", "since"},
		{"12h has passed", "the condition ends where since and a timestamp, as in 12h has passed since system.entered_state, should follow", ""},
		{"12h has passed in a", "since and a timestamp, as in 12h has passed since system.entered_state should be here, not in", "in"},
		{"12h has passed since", "the condition ends where a value should follow", ""},
		{"a is in", "the condition ends where a value should follow", ""},

		{"a = ?", "'?' cannot be in a name, which has letters, digits, _ and -", "?"},
		{"metadata.n, = 4", "',' cannot be in a name, which has letters, digits, _ and -", ","},
		{"foo.bar+", "'+' cannot be in a name, which has letters, digits, _ and -", "+"},
		{"metadata.list[0]", "'[' cannot be in a name, which has letters, digits, _ and -", "["},
		{"metadata.größe€x", "'€' cannot be in a name, which has letters, digits, _ and -", "€"},
		{"{a}", "'{' cannot be in a name, which has letters, digits, _ and -", "{"},
		{"metadata..a", `"metadata..a" is no path: names joined with dots, as in metadata.user.age`, "metadata..a"},
		{"metadata.", `"metadata." is no path: names joined with dots, as in metadata.user.age`, "metadata."},
		{"'gold'", `a string stands in double quotes: "gold"`, "'"},
		{`a = "gold`, "the string does not end on its line: close it with a double quote", `"`},
		{"\"a\nb\"", "the string does not end on its line: close it with a double quote", `"`},
		{`a = "\"`, "the string does not end on its line: close it with a double quote", `"`},
		{`"\x"`, `the string has an escape or a control character that JSON does not allow: write \" \\ \n \t or \u00e9`, `"\x"`},
		{"\"a\tb\"", `the string has an escape or a control character that JSON does not allow: write \" \\ \n \t or \u00e9`, "\"a\tb\""},
		{"true \xff", "this is not UTF-8", "\xff"},

		{"5-3", "5-3 is no number, such as 5, -5, 0.25 or 1e6; conditions do not calculate", "5-3"},
		{"1_000", "1_000 is no number, such as 5, -5, 0.25 or 1e6; conditions do not calculate", "1_000"},
		{"--5", "--5 is no number, such as 5, -5, 0.25 or 1e6; conditions do not calculate", "--5"},
		{"1.2.3", "1.2.3 is no number, such as 5, -5, 0.25 or 1e6; conditions do not calculate", "1.2.3"},
		{".5", ".5 is no number: write digits on both sides of the point, as in 0.5", ".5"},
		{"5.", "5. is no number: write digits on both sides of the point, as in 0.5", "5."},
		{"1h2d", "1h2d is no duration, which is written as 1d2h3m4s, with units in this order", "1h2d"},
		{"-5h", "-5h is no duration, which is written as 1d2h3m4s, with units in this order", "-5h"},
		{"1.5h", "1.5h is no duration, which is written as 1d2h3m4s, with units in this order", "1.5h"},
		{"3weeks", "3weeks is no duration, which is written as 1d2h3m4s, with units in this order", "3weeks"},
		{"106752d", "106752d is too long: a duration has at most 106751d", "106752d"},
		{"106751d24h", "106751d24h is too long: a duration has at most 106751d", "106751d24h"},
		{"99999999999999999999s", "99999999999999999999s is too long: a duration has at most 106751d", "99999999999999999999s"},
		{"24:00", "24:00 is no clock time: they go from 0:00 to 23:59:59", "24:00"},
		{"18:60", "18:60 is no clock time: they go from 0:00 to 23:59:59", "18:60"},
		{"18:30:60", "18:30:60 is no clock time: they go from 0:00 to 23:59:59", "18:30:60"},
		{"18:3", "18:3 is no clock time, such as 18:30 or 18:30:15", "18:3"},
		{"6:30pm", "6:30pm is no clock time, such as 18:30 or 18:30:15", "6:30pm"},

		{"a", "there is no a: a path begins with metadata, feeds, history or system, and a string stands in double quotes", "a"},
		{"true or label.a", "there is no label: a path begins with metadata, feeds, history or system, and a string stands in double quotes", "label.a"},
		{"feeds", "feeds is not a value: name the feed, as in feeds.NAME", "feeds"},
		{"system", "there is no system: system has entered_state, now, time", "system"},
		{"system.date = 1", "there is no system.date: system has entered_state, now, time", "system.date"},
		{"history", "there is no history: history has entered_state, previous_state", "history"},
		{"history.now", "there is no history.now: history has entered_state, previous_state", "history.now"},
		{"system.now.hour", "there is no system.now.hour: nothing is below system.now", "system.now.hour"},
		{"history.previous_state.x", "there is no history.previous_state.x: nothing is below history.previous_state", "history.previous_state.x"},
	} {
		compiled, err := condition.Parse(c.source)
		assert.Nil(t, compiled)
		var failure *condition.SyntaxError
		require.ErrorAs(t, err, &failure, "%q", c.source)
		assert.Equal(t, c.reason, failure.Reason, "%q", c.source)
		assert.Equal(t, c.marked, c.source[failure.Offset:][:failure.Length], "%q", c.source)
		assert.Equal(t, c.source, failure.Source)
		lines := strings.Split(err.Error(), "\n")
		require.Len(t, lines, 3)
		assert.Regexp(t, `^line \d+, column \d+: `, lines[0])
		assert.Regexp(t, `^ +\^+$`, lines[2])
	}
}

func TestAndBesideOr(t *testing.T) {
	for source, want := range map[string]string{
		"true or false and false":          "(true or false) and false, or true or (false and false)",
		"true and false or false":          "true and (false or false), or (true and false) or false",
		"1=1 and not 2 = 3 or (4<5 and 6)": "1 = 1 and (not 2 = 3 or (4 < 5 and 6)), or (1 = 1 and not 2 = 3) or (4 < 5 and 6)",
		"1 or\n2 # two\nand 3 or 4":        "(1 or 2) and (3 or 4), or 1 or (2 and 3) or 4",
		"1 and 2 and 3 or 4 and 5":         "1 and 2 and (3 or 4) and 5, or (1 and 2 and 3) or (4 and 5)",
		"not (1 or 2 and 3)":               "(1 or 2) and 3, or 1 or (2 and 3)",
	} {
		_, err := condition.Parse(source)
		var failure *condition.SyntaxError
		require.ErrorAs(t, err, &failure)
		assert.Equal(t, "and and or need parentheses: write "+want, failure.Reason, source)
		assert.Contains(t, []string{"and", "or"}, source[failure.Offset:][:failure.Length])
		if !strings.HasPrefix(source, "not") {
			for suggested := range strings.SplitSeq(want, ", or ") {
				parse(t, suggested)
			}
		}
	}
	_, err := condition.Parse("1 or " + strings.Repeat("metadata.long = 1 and ", 20) + "true")
	assert.ErrorContains(t, err, "and and or need parentheses: put them around all that or joins, or around all that and joins\n")
}

func TestSyntaxErrorsShowTheLine(t *testing.T) {
	for source, want := range map[string]string{
		"metadata.a and\n\tmetadata.ä === 4 and\nmetadata.b": "line 2, column 13: there is no ===: write =\n" +
			"     metadata.ä === 4 and\n" +
			"                ^^^",
		"true and\r\n  (false\r\n": "line 2, column 3: this parenthesis is not closed\n" +
			"      (false\n" +
			"      ^",
		"true and # and so on\n\n": "line 1, column 9: the condition ends where a value should follow\n" +
			"    true and # and so on\n" +
			"            ^",
		strings.Repeat("true and ", 20) + "a == b" + strings.Repeat(" and true", 20): "line 1, column 183: there is no ==: write =\n" +
			"    nd true and true and true and true and true and a == b and true and true and true and true and true \n" +
			"                                                      ^^",
		"\x1b[31m": "line 1, column 1: '\\x1b' cannot be in a name, which has letters, digits, _ and -\n" +
			"     [31m\n" +
			"    ^",
	} {
		_, err := condition.Parse(source)
		assert.EqualError(t, err, want)
	}
}
