package app_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// How large things may become. Anything larger is a sign that the plan is wrong, or that a concept
// is missing.
const (
	maxFunctionLines = 35  // of 95 of 100 functions, without tests
	maxLineLength    = 100 // in characters: of comments, scripts and pages
)

// sources calls a function with every file of the repository that has one of some endings.
func sources(t *testing.T, visit func(path, text string), endings ...string) {
	t.Helper()
	const root = "../.."
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root:
			return filepath.SkipDir
		case entry.IsDir() || !slices.Contains(endings, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		visit(filepath.ToSlash(relative), string(text))
		return err
	}))
}

func TestFunctionsAreSmall(t *testing.T) {
	var lines []int
	sources(t, func(path, text string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		files, file := parse(t, path, text)
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok {
				lines = append(lines, 1+files.Position(f.End()).Line-files.Position(f.Pos()).Line)
			}
		}
	}, ".go")
	slices.Sort(lines)
	assert.LessOrEqual(t, lines[len(lines)*95/100], maxFunctionLines)
}

func parse(t *testing.T, path, text string) (*token.FileSet, *ast.File) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	return files, file
}

// output begins the expected output of an example.
var output = regexp.MustCompile(`^// (Unordered output|Output):`)

// TestLinesOfProseAreShort leaves out lines that cannot be broken: addresses, the rows of tables,
// and the output of examples.
func TestLinesOfProseAreShort(t *testing.T) {
	short := func(path string, number int, line string) {
		t.Helper()
		length := utf8.RuneCountInString(strings.TrimRight(line, "\r\n"))
		if length > maxLineLength && !strings.Contains(line, "://") {
			t.Errorf("%s:%d has %d characters", path, number, length)
		}
	}
	sources(t, func(path, text string) {
		inTable := func(line string) bool { return strings.HasPrefix(line, "|") }
		for i, line := range slices.Collect(strings.Lines(text)) {
			if !inTable(line) {
				short(path, i+1, line)
			}
		}
	}, ".lua", ".md")
	sources(t, func(path, text string) {
		lines := slices.Collect(strings.Lines(text))
		files, file := parse(t, path, text)
		for _, group := range file.Comments {
			if output.MatchString(group.List[0].Text) {
				continue
			}
			first := files.Position(group.Pos()).Line
			for i, line := range lines[first-1 : files.Position(group.End()).Line] {
				if line = strings.TrimLeft(line, "\t"); strings.HasPrefix(line, "//") {
					short(path, first+i, line)
				}
			}
		}
	}, ".go")
}
