package view

// ManyEvents is from how many events on the loss of them asks for a name to be typed.
const ManyEvents = 100

// Confirm is the question before something is done.
type Confirm struct {
	// Title says what is to be done, Button the same, with whose and how many: "Delete search and drop
	// 129,620 events". Effects are what follows, one sentence each.
	Title, Button string
	Effects       []string
	// Name is what has to be typed, empty if nothing has to.
	Name string
	// Choose, if given, is asked besides. Hidden goes with the form.
	Choose *Select
	Hidden []Hidden
	// Command does the same.
	Command string
	// Back leads to the page before this one.
	Back string
}

// Hidden is a field that nobody sees.
type Hidden struct{ Name, Value string }

// Select is a field with a few values.
type Select struct {
	Name, Label, Value string
	Options            []Option
}

// Option is one of them.
type Option struct{ Value, Label string }

// Typed reports whether what was typed is what had to be.
func (c Confirm) Typed(text string) bool { return c.Name == "" || text == c.Name }
