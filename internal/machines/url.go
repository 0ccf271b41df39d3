package machines

import (
	"net/url"
	"strings"
)

// ExpandURL puts the names of a label into a URL for <label> and <state_machine>, percent-encoded
// but for the characters that need not be.
func ExpandURL(template string, machine Name, label LabelName) string {
	return strings.NewReplacer("<label>", escape(string(label)), "<state_machine>", escape(string(machine))).Replace(template)
}

// labelIn returns the name that is in a URL where a template has <label>, and whether the URL is
// like the template.
func labelIn(text, template string, machine Name) (name LabelName, fits bool) {
	template = strings.ReplaceAll(template, "<state_machine>", escape(string(machine)))
	before, after, _ := strings.Cut(template, "<label>")
	middle, begins := strings.CutPrefix(text, before)
	middle, ends := strings.CutSuffix(middle, after)
	unescaped, err := url.PathUnescape(middle)
	return LabelName(unescaped), begins && ends && err == nil && !strings.ContainsAny(middle, "/?#&")
}

func escape(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "+", "%20") }
