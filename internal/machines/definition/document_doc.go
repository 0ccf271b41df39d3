package definition

import (
	"cmp"
	"fmt"
	"slices"
)

// MaxBytes bounds each file, and several that are merged.
const MaxBytes = 1 << 20

// maxValues bounds the values of a file.
const maxValues = 200_000

// File is a YAML document. Its name is for errors.
type File struct {
	Name    string
	Content []byte
}

// Problem says what is wrong at a place of a file, and what to change. Line and Column count from
// 1, and a column is a character.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// String is the problem in one line, as compilers write it.
func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// Errors are all problems of a definition, in the order of the files and of their lines.
type Errors []Problem

// Error gives the first problem, and how many there are.
func (e Errors) Error() string {
	if len(e) == 1 {
		return e[0].String()
	}
	return fmt.Sprintf("%s (and %d more)", e[0], len(e)-1)
}

// Document holds the content of files, and the problems found in it.
type Document struct {
	// Root is nil if a file cannot be read.
	Root               *Value
	files              []File
	problems, warnings []finding
	// lines are where the lines of each file begin, once that was asked for.
	lines [][]int
}

// Read reads files, which are layers: earlier ones win. [Document.Err] returns the problems.
func Read(files ...File) *Document {
	d := &Document{files: files}
	d.Root = d.merged()
	return d
}

// Place is where something stands: in which of the files, and line and column as in [Problem].
type Place struct{ File, Line, Column int }

// finding is a problem before the files have names.
type finding struct {
	Place
	message string
}

// Refuse reports a problem.
func (d *Document) Refuse(at Place, format string, args ...any) {
	d.problems = append(d.problems, finding{at, fmt.Sprintf(format, args...)})
}

// Warn reports a problem for which the document is not refused.
func (d *Document) Warn(at Place, format string, args ...any) {
	d.warnings = append(d.warnings, finding{at, fmt.Sprintf(format, args...)})
}

// Refused is how many problems were reported.
func (d *Document) Refused() int { return len(d.problems) }

// Err is nil, or all problems as [Errors].
func (d *Document) Err() error {
	if len(d.problems) == 0 {
		return nil
	}
	return Errors(d.sorted(d.problems))
}

// Warnings returns the reported warnings, in order.
func (d *Document) Warnings() []Problem { return d.sorted(d.warnings) }

// sorted turns findings into problems. Findings that repeat because several aliases stand for one
// value become one problem.
func (d *Document) sorted(findings []finding) (problems []Problem) {
	slices.SortStableFunc(findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	for _, f := range slices.Compact(findings) {
		name := ""
		if f.File < len(d.files) {
			name = d.files[f.File].Name
		}
		problems = append(problems, Problem{name, f.Line, f.Column, f.message})
	}
	return problems
}
