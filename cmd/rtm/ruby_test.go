package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
)

// These match the parts that differ from run to run: a time, and the generated uuids.
var (
	aTime = regexp.MustCompile(`(:oldest:) [0-9]{13}\n`)
	aUUID = regexp.MustCompile(`(?m)^(  :uuid: )?[A-Z2-7]{26}\n`)
)

// TestTheRubyClientsScriptsGoOn replays a transcript of the commands of the Ruby client, version
// 3.2.3, when the output is not a terminal. Ours differ in four places: they print the uuid that
// they make, print nothing for no tokens, print tokens only if asked to, and fail to remove a token
// that does not exist. Of failing commands it only requires that they fail: the exit statuses
// differ.
func TestTheRubyClientsScriptsGoOn(t *testing.T) {
	transcript, err := os.ReadFile("testdata/ruby/transcript")
	require.NoError(t, err)
	b := startBus(t)
	t.Chdir(t.TempDir())
	rc := fmt.Sprintf("local:\n  bus: %s\n  token: %s\n", b.url, rootKey)
	require.NoError(t, os.WriteFile(".rtmrc", []byte(rc), 0o600))
	commands := strings.Split(string(transcript), "$ rtm ")
	require.Empty(t, commands[0])
	for _, command := range commands[1:] {
		line, want, _ := strings.Cut(command, "\n")
		line = strings.Replace(line, "token list", "token list --show-tokens", 1)
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), strings.Fields(line), &stdout, &stderr)
		got := aUUID.ReplaceAllString(aTime.ReplaceAllString(stdout.String(), "$1 TIME\n"), "${1}UUID\n")
		if want == "failed\n" {
			assert.NotEqual(t, app.ExitOK, status, line)
			assert.NotEmpty(t, stderr.String(), line)
			want = ""
		} else {
			assert.Equal(t, app.ExitOK, status, "%s: %s", line, stderr.String())
		}
		assert.Equal(t, want, got, line)
	}
}

// TestRubyScalars compares with the output of Ruby 3.1 (Psych 4.0.3, libyaml 0.2.5).
func TestRubyScalars(t *testing.T) {
	for _, want := range strings.Split(`'12' '1_000' '0x1f' '012' '08' 1e3 1e5 '1.5' 'yes' 'no' 'true' 'false' 'null' "~" 'on' 'off' "y" "n" "-" "--" ":a" 'a:' a:b a-b `+
		`"-1" "+1" '12:30' '1:2' _ __ _1 1_ root--0 '0b1' 0o7 '0' '00' ".5" '1.' '2020-01-01' '2020-1-1' "=" null-x yes--1 no1 1-2 "-a" 1e 0e0 685e23 ":12" "::" 'a::' ":" `+
		`"-:" '190:20:30' inf nan NaN '20200101' 1__0 1:60 '9:59' '09:59' "-_" '1,2' 2020-01-01t00:00:00z '00:00' '0:0' "-0" e1 1e-3 0-1 1--2 '0_1' 0_8 0b12 0xg tt 2020-13-01 `+
		`2020-02-30 '2020-01-01t00:00:00-05:00' '2020-01-01t00:00:00' '0x1_f' '0xfff0' '09' '1:59:59' '1_0:30' a_ a- '0_' '0__1' '12_345' 1__2 '1_2_3' '0_7' '0b1_0' 'null:' `+
		`'yes:' https://x/a:b https://x/[a] https://x/%20,&*!|>{} 'https://x/:' https://x/a? https://x/#a ''`, " ") {
		text := want
		if text[0] == '\'' || text[0] == '"' {
			text = text[1 : len(text)-1]
		}
		assert.Equal(t, want, rubyScalar(text))
	}
	assert.Equal(t, `"two\nlines: \x1b"`, rubyScalar("two\nlines: \x1b"), "what a bus would not take is quoted")
}
