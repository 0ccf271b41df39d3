package definition

import (
	"fmt"
	"strings"
	"unicode"

	"routemaster/internal/machines"
)

// dot draws a machine in the language of Graphviz.
func dot(m *machines.Machine) string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotString(string(m.Name)))
	b.WriteString("  node [fontname=\"sans-serif\" style=filled]\n  edge [fontname=\"sans-serif\" fontsize=11]\n")
	b.WriteString("  \"\" [shape=point width=0.15]\n")
	for _, s := range m.States {
		style := `shape=box style="filled,rounded" fillcolor="` + gateFill + `"`
		if s.Action != nil {
			style = `shape=box fillcolor="` + actionFill + `"`
		}
		if s.Next == nil {
			style += " peripheries=2"
		}
		fmt.Fprintf(&b, "  %s [%s tooltip=%s]\n", dotString(string(s.Name)), style, dotString(about(s)))
	}
	fmt.Fprintf(&b, "  \"\" -> %s\n", dotString(string(m.First().Name)))
	for _, e := range edges(m) {
		fmt.Fprintf(&b, "  %s -> %s", dotString(string(m.States[e.from].Name)), dotString(string(m.States[e.to].Name)))
		switch {
		case e.fallback:
			b.WriteString(` [label="default" style=dashed]`)
		case e.label != "":
			fmt.Fprintf(&b, " [label=%s tooltip=%s]", dotString(e.label), dotString(e.path+" = "+e.label))
		}
		b.WriteString("\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// dotString quotes a string. A backslash would begin an escape.
func dotString(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\x00", "").Replace(text) + `"`
}

// mermaid draws a machine as a state diagram. That has no dashed arrows.
func mermaid(m *machines.Machine) string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	fmt.Fprintf(&b, "  classDef gate fill:%s,stroke:%s,color:#000\n  classDef action fill:%s,stroke:%s,color:#000\n",
		gateFill, gateLine, actionFill, actionLine)
	for i, s := range m.States { // names may be words of Mermaid, such as state
		fmt.Fprintf(&b, "  state %q as s%d\n", s.Name, i)
	}
	b.WriteString("  [*] --> s0\n")
	for _, e := range edges(m) {
		fmt.Fprintf(&b, "  s%d --> s%d", e.from, e.to)
		if e.label != "" {
			b.WriteString(": " + mermaidText(e.label))
		}
		b.WriteString("\n")
	}
	for i, s := range m.States {
		if s.Next == nil {
			fmt.Fprintf(&b, "  s%d --> [*]\n", i)
		}
	}
	for i, s := range m.States {
		kind := "gate"
		if s.Action != nil {
			kind = "action"
		}
		fmt.Fprintf(&b, "  class s%d %s\n", i, kind)
	}
	return b.String()
}

// mermaidText writes characters that may have a meaning in Mermaid as character codes.
func mermaidText(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune(" .,_…", r):
			b.WriteRune(r)
		case !unicode.IsControl(r):
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}
