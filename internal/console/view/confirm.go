package view

// ManyEvents is from how many events on the loss of them asks for a name to be typed.
const ManyEvents = 100

// Confirm is the question before something is done.
type Confirm struct {
	// Title names the action and Button repeats it, with the owner and the number: "Delete search and
	// drop 129,620 events". Effects are the consequences, one sentence each.
	Title, Button string
	Effects       []string
	// Name is the text to type, empty if none is required.
	Name string
	// Choose, if given, is asked besides. Hidden goes with the form.
	Choose *Select
	Hidden []Hidden
	// Command does the same.
	Command string
	// Back leads to the page before this one.
	Back string
}

// Hidden is a hidden field.
type Hidden struct{ Name, Value string }

// Select is a field with a few values.
type Select struct {
	Name, Label, Value string
	Options            []Option
}

// Option is one of them.
type Option struct{ Value, Label string }

// Typed reports whether the required text was typed.
func (c Confirm) Typed(text string) bool { return c.Name == "" || text == c.Name }
