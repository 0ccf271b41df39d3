package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Kind is the type of a value, in words for people.
type Kind string

// The kinds.
const (
	Map     Kind = "a map"
	List    Kind = "a list"
	String  Kind = "a string"
	Number  Kind = "a number"
	Boolean Kind = "true or false"
	Null    Kind = "null"
)

// Value is a value of a document, without aliases and merge keys.
type Value struct {
	Place
	Kind Kind
	// Text is the text of a scalar: a number as JSON writes it, a boolean as "true" or "false".
	Text string
	// Entries are set for a map, Items for a list.
	Entries []Entry
	Items   []*Value
	// index is where keys are in Entries.
	index map[string]int
	// Broken is set once a problem was reported here, so that nothing else is reported.
	Broken bool
	// node is where a scalar comes from.
	node *yaml.Node
	// replaced says that Text has placeholders replaced.
	replaced bool
	// merged is set if several layers have the map, removes if the null of one layer hides a later
	// layer's value.
	merged, removes bool
}

// Entry is a key of a map, which is a scalar, and its value.
type Entry struct{ Key, Value *Value }

// add appends to a map, which does not have the key.
func (v *Value) add(e Entry) {
	if v.index == nil {
		v.index = map[string]int{}
	}
	v.index[e.Key.Text] = len(v.Entries)
	v.Entries = append(v.Entries, e)
}

// At returns the value at a key of a map, or nil.
func (v *Value) At(key string) *Value {
	if i, ok := v.index[key]; ok {
		return v.Entries[i].Value
	}
	return nil
}

// KeyOf returns a key of a map, or nil.
func (v *Value) KeyOf(key string) *Value {
	if i, ok := v.index[key]; ok {
		return v.Entries[i].Key
	}
	return nil
}

// parse reads one of the files. It returns nil if that has no document.
func (d *Document) parse(file int) *Value {
	content, start := d.files[file].Content, Place{file, 1, 1}
	if len(content) > MaxBytes {
		d.Refuse(start, "a file has at most %d bytes, and this one %d: divide it", MaxBytes, len(content))
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(asVersion11(content)))
	var document yaml.Node
	if err == nil {
		err = loader.Load(&document)
	}
	if err == io.EOF || err == nil && len(document.Content) == 0 {
		d.Refuse(start, "the file is empty: a definition begins with state_machines")
		return nil
	}
	if err == nil {
		var second yaml.Node
		if err = loader.Load(&second); err == nil {
			d.Refuse(Place{file, max(1, second.Line), max(1, second.Column)}, "a file has one document; remove the line --- between two")
			return nil
		}
	}
	if err != io.EOF {
		d.refuseYAML(file, err)
		return nil
	}
	c := converter{Document: d, file: file, open: map[*yaml.Node]bool{}}
	return c.value(document.Content[0])
}

// versionDirective is the line %YAML 1.2 or the like, which may stand before the document.
var versionDirective = regexp.MustCompile(`^(?:\x{feff}?(?:[ \t]*(?:#[^\r\n]*)?|%[^\r\n]*)[\r\n]+)*\x{feff}?%YAML[ \t]+1\.(\d)(?:[ \t]|[\r\n])`)

// asVersion11 has a file call itself YAML 1.1, if it names another version 1: the library refuses
// all others, but reads them alike. All else stays where it is.
func asVersion11(content []byte) []byte {
	at := versionDirective.FindSubmatchIndex(content)
	if at == nil {
		return content
	}
	content = bytes.Clone(content)
	content[at[2]] = '1'
	return content
}

// refuseYAML reports a file that is not YAML.
func (d *Document) refuseYAML(file int, err error) {
	wrong, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		d.Refuse(Place{file, 1, 1}, "%s", err)
		return
	}
	message := strings.TrimPrefix(wrong.Message, "yaml: ")
	if wrong.ContextMsg != "" {
		message = wrong.ContextMsg + ": " + message
	}
	at := Place{file, max(1, wrong.Mark.Line), max(1, wrong.Mark.Column)}
	switch {
	case wrong.Mark.Line == 0 && wrong.ContextMark.Line > 0:
		at.Line, at.Column = wrong.ContextMark.Line, max(1, wrong.ContextMark.Column)
	case wrong.Mark.Line == 0: // of bytes that are no characters the library only has the offset
		at = d.placeOf(file, wrong.Mark.Index)
	}
	d.Refuse(at, "this is not YAML: %s", message)
}

// converter makes values of the nodes of a file.
type converter struct {
	*Document
	file int
	// open are the nodes that the one at hand is in.
	open map[*yaml.Node]bool
	// count is how many values there are.
	count int
}

func (c *converter) value(n *yaml.Node) *Value {
	v := &Value{Place: Place{c.file, n.Line, n.Column}, Kind: Null, node: n, Broken: true}
	c.count++
	switch {
	case c.count == maxValues+1:
		c.Refuse(v.Place, "a definition has at most %d values, and one that an alias stands for counts again: divide it", maxValues)
	case c.count > maxValues:
	case n.Kind == yaml.AliasNode && c.open[n.Alias]:
		c.Refuse(v.Place, "*%s stands for what it is in: remove it", n.Value)
	case n.Kind == yaml.AliasNode:
		return c.value(n.Alias)
	default:
		c.open[n] = true
		c.fill(v, n)
		delete(c.open, n)
	}
	return v
}

// fill fills a value from a node.
func (c *converter) fill(v *Value, n *yaml.Node) {
	v.Broken = false
	switch tag := n.ShortTag(); {
	case n.Kind == yaml.MappingNode && tag == "!!map":
		v.Kind = Map
		c.entries(v, n)
	case n.Kind == yaml.SequenceNode && tag == "!!seq":
		v.Kind = List
		for _, item := range n.Content {
			v.Items = append(v.Items, c.value(item))
		}
	case tag == "!!str" && isTooLarge(n):
		v.Broken = true
		c.Refuse(v.Place, "this number is too large: it may be below 1.8e308, or 64 bits of 0x, 0o and 0b; put it in quotes if it is a string")
	case n.Kind == yaml.ScalarNode && v.setScalar(tag):
	default:
		v.Broken = true
		c.Refuse(v.Place, "a definition has no values of the kind %s: write a string, a number, true, false, a list or a map", tag)
	}
}

// isTooLarge reports whether a plain scalar is a number that the library takes for a string, as it
// does not fit.
func isTooLarge(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Style != 0 {
		return false
	}
	plain := strings.ReplaceAll(n.Value, "_", "")
	_, err := strconv.ParseInt(plain, 0, 64)
	if !strings.ContainsAny(plain, "xX") && !errors.Is(err, strconv.ErrRange) {
		_, err = strconv.ParseFloat(plain, 64)
	}
	return errors.Is(err, strconv.ErrRange)
}

// setScalar reads a scalar; false if no definition may have it.
func (v *Value) setScalar(tag string) (ok bool) {
	v.Text, ok = v.node.Value, true
	switch tag {
	case "!!null":
		v.Kind = Null
	case "!!bool":
		v.Kind, v.Text = Boolean, strconv.FormatBool(isTrue(v.Text))
	case "!!int", "!!float":
		v.Kind = Number
		v.Text, ok = jsonNumber(v.node)
	case "!!str", "!!timestamp":
		v.Kind = String
		if v.node.Style == 0 && isOldBoolean(v.Text) {
			v.Kind, v.Text = Boolean, strconv.FormatBool(isTrue(v.Text))
		}
	default:
		return false
	}
	return ok
}

func isTrue(text string) bool {
	return slices.Contains([]string{"true", "yes", "on"}, strings.ToLower(text))
}

// isOldBoolean reports whether a plain scalar is a boolean in YAML 1.1, but a string in 1.2.
func isOldBoolean(text string) bool {
	return len(text) <= 3 && slices.Contains([]string{"yes", "no", "on", "off"}, strings.ToLower(text)) &&
		(text == strings.ToLower(text) || text[1:] == strings.ToLower(text[1:]) || text == strings.ToUpper(text))
}

// jsonNumber is a number as JSON writes it, which has no infinity.
func jsonNumber(n *yaml.Node) (string, bool) {
	if json.Valid([]byte(n.Value)) {
		return n.Value, true
	}
	var decoded any
	if n.Decode(&decoded) != nil {
		return "", false
	}
	written, err := json.Marshal(decoded)
	return string(written), err == nil
}

// entries adds the keys of a map, including the ones from merge keys.
func (c *converter) entries(v *Value, n *yaml.Node) {
	var merged []*Value
	for i := 0; i+1 < len(n.Content); i += 2 {
		node := n.Content[i]
		key := &Value{Place: Place{c.file, node.Line, node.Column}, Kind: String, Text: node.Value, node: node}
		has := c.value(n.Content[i+1])
		switch tag := node.ShortTag(); {
		case tag == "!!merge":
			merged = append(merged, has)
		case node.Kind != yaml.ScalarNode || tag == "!!null":
			c.Refuse(key.Place, "a key must be a string")
		case v.At(key.Text) != nil:
			c.Refuse(key.Place, "the key %q is there twice, first in line %d: remove one", key.Text, v.KeyOf(key.Text).Line)
		default:
			v.add(Entry{key, has})
		}
	}
	for _, from := range slices.Backward(merged) { // of several lines the last wins
		c.mergeKey(v, from)
	}
}

// mergeKey adds the entries of a merge key: of one map, or of several, of which earlier ones win.
func (c *converter) mergeKey(v, from *Value) {
	switch from.Kind {
	case Map:
		for _, e := range from.Entries {
			if v.At(e.Key.Text) == nil {
				v.add(e)
			}
		}
	case List:
		for _, item := range from.Items {
			if item.Kind == List { // one level only
				item = &Value{Place: item.Place, Kind: String}
			}
			c.mergeKey(v, item)
		}
	default:
		if !from.Broken {
			c.Refuse(from.Place, "<< needs a map, as an alias to one")
		}
	}
}
