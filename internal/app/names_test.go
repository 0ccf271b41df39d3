package app_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestNoNameHidesAnother refuses names in functions that hide a builtin, such as max, or a package
// that the file imports: readers confuse them.
func TestNoNameHidesAnother(t *testing.T) {
	sources(t, func(name, text string) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		files, file := parse(t, name, text)
		taken := namesTaken(file)
		for _, id := range declared(file) {
			if taken[id.Name] {
				at := files.Position(id.Pos())
				t.Errorf("%s:%d: %s is the name of a builtin or an imported package", name, at.Line, id.Name)
			}
		}
	}, ".go")
}

// namesTaken are the builtins, and the names by which a file knows packages. A version is no name.
func namesTaken(file *ast.File) map[string]bool {
	taken := map[string]bool{}
	for _, name := range types.Universe.Names() {
		taken[name] = true
	}
	for _, i := range file.Imports {
		imported, _ := strconv.Unquote(i.Path.Value)
		if isVersion.MatchString(path.Base(imported)) {
			imported = path.Dir(imported)
		}
		name := path.Base(imported)
		if i.Name != nil {
			name = i.Name.Name
		}
		taken[name] = name != "_"
	}
	return taken
}

var isVersion = regexp.MustCompile(`^v[0-9]+$`)

// declared are the names that a file declares, except for fields and methods.
func declared(file *ast.File) (names []*ast.Ident) {
	add := func(all ...ast.Expr) {
		for _, one := range all {
			if id, ok := one.(*ast.Ident); ok {
				names = append(names, id)
			}
		}
	}
	fields := func(lists ...*ast.FieldList) {
		for _, list := range lists {
			if list == nil {
				continue
			}
			for _, field := range list.List {
				names = append(names, field.Names...)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key, n.Value)
			}
		case *ast.ValueSpec:
			names = append(names, n.Names...)
		case *ast.TypeSpec:
			add(n.Name)
			fields(n.TypeParams)
		case *ast.FuncDecl:
			if fields(n.Recv); n.Recv == nil {
				add(n.Name)
			}
		case *ast.FuncType:
			fields(n.TypeParams, n.Params, n.Results)
		}
		return true
	})
	return names
}
