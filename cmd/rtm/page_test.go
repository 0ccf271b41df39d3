package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var writePage = flag.Bool("write-page", false, "write docs/rtm.md instead of comparing it")

// pageSections are the sections of the page that are made of the help, with their commands, and
// where to read more.
var pageSections = []struct{ title, more, commands string }{
	{"Clients", "[Rotating tokens](operating.md#rotating-a-token) has the steps, [the console](operating.md#logging-in) what there is to see.", "token console"},
	{"Topics", "[Publishing](publishing.md) has the API, [history and replay](dead-letters.md#history) what can be read later.", "topic pub events tail"},
	{"Subscriptions", "See [subscribing](subscribing.md), and [nothing arrives](subscribing.md#nothing-arrives).", "sub attempts queue replay"},
	{"Dead letters", "They have [a page](dead-letters.md).", "dead"},
	{"Signatures", "See [receiving safely](subscribing.md#signatures).", "verify"},
	{"Jobs", "What these do is said of the [API](http-api.md#job-types). Wrong flags are refused before anything is sent.", "job"},
	{"State machines", "Definitions have [a page](machines.md#a-definition). `validate`, and `graph` of files, need no bus.", "machine label"},
	{"Operating", "See [operating](operating.md), and for health checks [in a container](operating.md#health-checks-and-scaling).", "top workers health doctor dev version"},
	{"A Redis Cluster", "These work on Redis itself. [Scaling](scaling.md) has them step by step.", "cluster copy"},
	{"From the Ruby original", "See [migrating from Ruby](migrating-from-ruby.md).", "migrate"},
}

const pageMarker = "<!-- What follows is made of the help by `go generate ./cmd/rtm`. -->\n"

// TestThePageHasTheHelp compares docs/rtm.md, behind its head, with the help of all commands.
func TestThePageHasTheHelp(t *testing.T) {
	const name = "../../docs/rtm.md"
	page, err := os.ReadFile(name)
	require.NoError(t, err)
	head, made, found := strings.Cut(string(page), pageMarker)
	require.True(t, found)
	if *writePage {
		require.NoError(t, os.WriteFile(name, []byte(head+pageMarker+pageOfHelp(t)), 0o644))
		return
	}
	assert.Equal(t, pageOfHelp(t), made, "run go generate ./cmd/rtm")
}

// pageOfHelp returns the sections. Each command is in one.
func pageOfHelp(t *testing.T) string {
	root := newRoot()
	var page strings.Builder
	missing := []string{}
	for _, command := range root.Commands() {
		missing = append(missing, command.Name())
	}
	for _, section := range pageSections {
		fmt.Fprintf(&page, "\n## %s\n\n%s", section.title, wrapped(section.more, ""))
		for _, name := range strings.Fields(section.commands) {
			command, _, err := root.Find([]string{name})
			require.NoError(t, err)
			writeHelp(&page, command)
			missing = slices.DeleteFunc(missing, func(other string) bool { return other == name })
		}
	}
	assert.Equal(t, []string{"completion"}, missing)
	return page.String()
}

// writeHelp writes the description of a command and its flags, or all commands of a group.
func writeHelp(page *strings.Builder, command *cobra.Command) {
	for _, below := range command.Commands() {
		writeHelp(page, below)
	}
	if command.HasSubCommands() {
		return
	}
	text := command.Long
	if text == "" {
		text = strings.ToUpper(command.Short[:1]) + command.Short[1:] + "."
	}
	fmt.Fprintf(page, "\n**`%s`**\n", strings.TrimSuffix(command.UseLine(), " [flags]"))
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(paragraph, "  ") {
			fmt.Fprintf(page, "\n```\n%s\n```\n", strings.TrimPrefix(paragraph, "  "))
			continue
		}
		page.WriteString("\n" + wrapped(strings.NewReplacer("<", "&lt;", "*", `\*`).Replace(paragraph), ""))
	}
	first := true
	command.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "yes" || slices.Contains([]string{jsonArray, jsonObject, "print JSON"}, f.Usage) {
			return
		}
		if first {
			page.WriteString("\n")
		}
		first = false
		page.WriteString(wrapped("- "+flagHelp(f), "  "))
	})
}

// flagHelp is a flag with its help and its default.
func flagHelp(f *pflag.Flag) string {
	value, usage := pflag.UnquoteUsage(f)
	text := "`--" + f.Name
	if value != "" {
		text += " " + value
	}
	text += "`"
	if f.Shorthand != "" {
		text = "`-" + f.Shorthand + "`, " + text
	}
	text += ": " + usage
	if !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
		text += " (default " + f.DefValue + ")"
	}
	return strings.NewReplacer("<", "&lt;", "*", `\*`).Replace(text)
}

// startsList is a word that would begin a list or a heading at the beginning of a line.
var startsList = regexp.MustCompile(`^([-+#]+|\d+[.)])$`)

// wrapped breaks a text into lines for a page, and indents all but the first.
func wrapped(text, indent string) string {
	const width = 100
	var lines []string
	for i, word := range strings.Fields(text) {
		last := len(lines) - 1
		switch {
		case i == 0:
			lines = append(lines, word)
		case utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) > width-4 && !startsList.MatchString(word):
			lines = append(lines, indent+word)
		default:
			lines[last] += " " + word
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
