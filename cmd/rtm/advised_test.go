package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryCommandThatIsAdvisedExists reads all texts of the programs and requires that each rtm
// command in them exists. A command in backticks must be whole. One outside backticks, except in
// rtm's own help, must need no arguments, so that it is whole too.
func TestEveryCommandThatIsAdvisedExists(t *testing.T) {
	seen := 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		isHelp := strings.Contains(filepath.ToSlash(path), "cmd/rtm/")
		for _, text := range textsOf(t, path) {
			n, err := checkAdvice(text, isHelp)
			assert.NoError(t, err, "%s: %q", path, text)
			seen += n
		}
		return nil
	}))
	assert.Greater(t, seen, 100)
}

// textsOf returns the texts of a file that users may see: a program's strings, with an X for each
// inserted value, or a page as it is.
func textsOf(t *testing.T, path string) (texts []string) {
	t.Helper()
	switch {
	case strings.HasSuffix(path, "_test.go"):
	case strings.HasSuffix(path, ".go"):
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		return stringsOf(file)
	case slices.Contains([]string{".html", ".js"}, filepath.Ext(path)), filepath.Base(path) == "openapi.json", filepath.Base(path) == "alerts.yaml":
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		return []string{strings.Join(strings.Fields(string(page)), " ")}
	}
	return texts
}

// stringsOf returns the strings below a node, joined where the program joins them.
func stringsOf(node ast.Node) (texts []string) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CallExpr:
			if command, ok := advisedBy(n); ok {
				texts = append(texts, command)
			}
		case *ast.BinaryExpr:
			text, rest := joined(n)
			texts = append(texts, text)
			for _, other := range rest {
				texts = append(texts, stringsOf(other)...)
			}
			return false
		case *ast.BasicLit:
			text, _ := joined(n)
			texts = append(texts, text)
		}
		return true
	})
	return texts
}

// joined returns a text with an X for each part that is not in the program, and those parts.
func joined(e ast.Expr) (text string, rest []ast.Expr) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ = strconv.Unquote(e.Value)
		}
		return text, nil
	case *ast.BinaryExpr:
		left, others := joined(e.X)
		right, more := joined(e.Y)
		return left + right, append(others, more...)
	}
	return "X", []ast.Expr{e}
}

// advisedBy is a command that a call of bus.Command or bus.Commands makes, with an X for each
// value.
func advisedBy(call *ast.CallExpr) (command string, ok bool) {
	if f, is := call.Fun.(*ast.SelectorExpr); !is || !strings.HasPrefix(f.Sel.Name, "Command") || fmt.Sprint(f.X) != "bus" {
		return "", false
	}
	words, rest := joined(call.Args[0])
	if len(rest) > 0 {
		return "", false
	}
	command = "`rtm " + words
	for i := range call.Args[1:] {
		if i > 0 || !strings.HasSuffix(words, "=") {
			command += " "
		}
		command += "X"
	}
	if call.Ellipsis.IsValid() {
		command += " X" // there are several
	}
	return command + "`", true
}

var (
	inBackticks = regexp.MustCompile("`(?:bin/)?rtm ([^`]*)`")
	mentioned   = regexp.MustCompile(`\brtm((?: [a-z]+)+)((?: --[a-z-]+)*)( [%X])?`)
	putIn       = regexp.MustCompile(`\{\{[^}]*\}\}|\{[a-z]+\}`)
	formatted   = regexp.MustCompile(`%(\[\d+\])?[a-z]`)
)

// checkAdvice checks all commands in a text, and counts them.
func checkAdvice(text string, isHelp bool) (commands int, err error) {
	for _, found := range inBackticks.FindAllStringSubmatch(text, -1) {
		commands++
		if wrong := checkWhole(found[1]); wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", found[0], wrong))
		}
	}
	for _, found := range mentioned.FindAllStringSubmatch(inBackticks.ReplaceAllString(text, ""), -1) {
		commands++
		if wrong := checkMention(strings.Fields(found[1]), strings.Fields(found[2]), found[3] != "", isHelp); wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", found[0], wrong))
		}
	}
	return commands, err
}

// checkWhole checks a command that is to be copied.
func checkWhole(line string) error {
	line = strings.ReplaceAll(line, "NUMBER", "1")
	line = formatted.ReplaceAllString(putIn.ReplaceAllString(line, "X"), "1")
	command, rest, err := newRoot().Find(strings.Fields(line))
	if err != nil {
		return err
	}
	if err := command.ParseFlags(rest); err != nil {
		return err
	}
	if command.HasSubCommands() {
		return errors.New("is only a group of commands")
	}
	return command.Args(command, command.Flags().Args())
}

// checkMention checks a command within a sentence, where only the first words belong to the
// command. If it is cut, its end is not in the text.
func checkMention(words, flags []string, isCut, isHelp bool) error {
	command := newRoot()
	for _, word := range words {
		i := slices.IndexFunc(command.Commands(), func(c *cobra.Command) bool { return c.Name() == word || c.HasAlias(word) })
		if i < 0 {
			break
		}
		command = command.Commands()[i]
	}
	if command.HasSubCommands() && command.HasParent() && isCut {
		return nil
	}
	if command.HasSubCommands() {
		return fmt.Errorf("%q has no such command", command.CommandPath())
	}
	for _, flag := range flags {
		if command.Flag(strings.TrimPrefix(flag, "--")) == nil {
			return fmt.Errorf("%q has no flag %s", command.CommandPath(), flag)
		}
	}
	if !isHelp {
		return command.Args(command, nil)
	}
	return nil
}

func TestCheckAdvice(t *testing.T) {
	for text, ok := range map[string]bool{
		"`rtm label add {machine} {label}` makes it": true, "`rtm label add trial` makes it": false, "`rtm label frob`": false, "`rtm label`": false,
		"`rtm doctor --fix`": true, "`rtm doctor --nonsense`": false, "`rtm top` shows it": true, "rtm top shows it": true, "rtm label retry does it": false,
		"rtm frobs it": false, "rtm label lists them": false, "rtm doctor --fix does": true, "rtm doctor --nonsense does": false,
		"`rtm job type set --concurrency=NUMBER X`": true, "`rtm cluster release %[1]d`": true, "a version of rtm, and nothing more": true,
	} {
		_, err := checkAdvice(text, false)
		assert.Equal(t, ok, err == nil, "%s: %v", text, err)
	}
	_, err := checkAdvice("rtm label retry does it", true)
	assert.NoError(t, err)
}
