package definition

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

// merged reads the files, and merges them. It returns nil if one cannot be read.
func (d *Document) merged() (root *Value) {
	if len(d.files) == 0 {
		d.Refuse(Place{0, 1, 1}, "there is no file: name one at least")
		return nil
	}
	var layers []*Value
	for i := range d.files {
		if layer := d.parse(i); layer != nil {
			layers = append(layers, layer)
		}
	}
	if len(layers) < len(d.files) {
		return nil
	}
	root = layers[len(layers)-1]
	for _, layer := range slices.Backward(layers[:len(layers)-1]) {
		root = d.layer(layer, root)
	}
	return withoutRemoved(root)
}

// layer puts one value over another.
func (d *Document) layer(over, under *Value) *Value {
	switch {
	case over.Kind == Null && !over.Broken && (under.Kind != Null || under.removes):
		return &Value{Place: over.Place, Kind: Null, node: over.node, removes: true}
	case over.Kind == Null || under.Kind == Null:
	case over.Kind != under.Kind:
		d.Refuse(over.Place, "this is %s, and %s in %s:%d: layers must have the same kind of value, or null in the earlier one",
			over.Kind, under.Kind, d.files[under.File].Name, under.Line)
	case over.Kind == Map:
		return d.layerMaps(over, under)
	}
	return over
}

func (d *Document) layerMaps(over, under *Value) *Value {
	merged := &Value{Place: over.Place, Kind: Map, merged: true}
	for _, e := range over.Entries {
		if below := under.At(e.Key.Text); below != nil {
			e.Value = d.layer(e.Value, below)
		}
		merged.add(e)
	}
	for _, e := range under.Entries {
		if over.At(e.Key.Text) == nil {
			merged.add(e)
		}
	}
	return merged
}

// withoutRemoved returns merged maps without the keys that an earlier layer's null removes.
func withoutRemoved(v *Value) *Value {
	if v.Kind != Map || !v.merged {
		return v
	}
	kept := &Value{Place: v.Place, Kind: Map}
	for _, e := range v.Entries {
		if !e.Value.removes {
			kept.add(Entry{e.Key, withoutRemoved(e.Value)})
		}
	}
	return kept
}

// YAML writes the document, which can be read again. It fails with [Errors] if it is too large.
func (d *Document) YAML() ([]byte, error) {
	content, err := yaml.Dump(d.Root.yaml())
	if err != nil {
		return nil, fmt.Errorf("writing the merged layers: %w", err)
	}
	if len(content) > MaxBytes {
		d.Refuse(Place{0, 1, 1}, "the layers have %d bytes when they are merged, and may have %d", len(content), MaxBytes)
	}
	return content, d.Err()
}

// yaml is the node for a value, which is read as the same value again.
func (v *Value) yaml() *yaml.Node {
	switch v.Kind {
	case Map:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, e := range v.Entries {
			n.Content = append(n.Content, e.Key.yaml(), e.Value.yaml())
		}
		return n
	case List:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range v.Items {
			n.Content = append(n.Content, item.yaml())
		}
		return n
	case Null:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	case Boolean:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: v.Text}
	case Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: v.node.ShortTag(), Value: v.Text}
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v.Text, Style: v.node.Style &^ yaml.TaggedStyle}
	if n.Style == 0 && (isOldBoolean(v.Text) || v.Text == "<<") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
