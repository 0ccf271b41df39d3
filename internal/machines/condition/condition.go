package condition

import (
	"slices"
)

// Condition is a parsed condition. It never changes, and is safe for concurrent use.
type Condition struct {
	source string
	root   node
	paths  []Path
	parts  []part
}

// part is one entry of an explanation: a piece of the source whose value is reported.
type part struct {
	text string
	node node
}

func newCondition(source string, root node, paths []Path) *Condition {
	c := &Condition{source: source, root: root, paths: paths}
	c.addTests(root)
	return c
}

// addTests adds a part for each test in a node, and for each path in the tests. A parenthesis that
// groups operands of and or or is no test itself, but contains some.
func (c *Condition) addTests(n node) {
	switch n := n.(type) {
	case junction:
		for _, operand := range n.operands {
			c.addTests(operand)
		}
		return
	case negation:
		if joins(n.operand) {
			c.addTests(n.operand)
			return
		}
	}
	c.addPart(n)
	c.addPaths(n)
}

// joins reports whether a node is two or more tests.
func joins(n node) bool {
	if not, ok := n.(negation); ok {
		return joins(not.operand)
	}
	_, ok := n.(junction)
	return ok
}

func (c *Condition) addPaths(n node) {
	switch n := n.(type) {
	case pathNode:
		c.addPart(n)
	case negation:
		c.addPaths(n.operand)
	case comparison:
		c.addPaths(n.left)
		c.addPaths(n.right)
	case phrase:
		c.addPaths(n.left)
		c.addPaths(n.right)
	case junction:
		for _, operand := range n.operands {
			c.addPaths(operand)
		}
	}
}

// addPart adds a node to the parts, unless there is one that reads the same.
func (c *Condition) addPart(n node) {
	text := normalize(n.where().in(c.source))
	if !slices.ContainsFunc(c.parts, func(p part) bool { return p.text == text }) {
		c.parts = append(c.parts, part{text, n})
	}
}

// String returns the source.
func (c *Condition) String() string { return c.source }

// Paths returns all paths in the condition, in the order of the source.
func (c *Condition) Paths() []Path { return slices.Clone(c.paths) }

// OpensWithTime reports whether the condition may come to hold as time passes: it has a test that
// some time has passed, or reads system.now or system.time. A not around several tests is left out.
func (c *Condition) OpensWithTime() bool {
	return slices.ContainsFunc(c.parts, func(p part) bool {
		switch n := p.node.(type) {
		case phrase:
			return n.word == "passed" && !n.negated
		case pathNode:
			return n.path.Names[0] == "system" && n.path.Names[1] != "entered_state"
		}
		return false
	})
}

// Evaluate reports whether the condition holds. It fails with an [*EvaluationError], which wraps
// [ErrUnknown] if the result depends on a feed that was not asked.
func (c *Condition) Evaluate(env *Environment) (bool, error) {
	return (&evaluation{c.source, env}).test(c.root)
}
