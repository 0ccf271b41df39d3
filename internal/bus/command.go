package bus

import (
	"slices"
	"strings"
)

// plainCharacters need no quotes in a word of a shell.
const plainCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/=@-"

// ShellWord quotes a word for a shell, unless it needs none.
func ShellWord(word string) string {
	if word != "" && strings.Trim(word, plainCharacters) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Command is a whole command of rtm, as a text advises it: in backticks, to be copied into a shell
// that has the bus and the token in its environment. Words are the fixed part, with flags; an "="
// at its end belongs to the first value. Values are known to the caller, or placeholders in
// capitals. None of them may be a secret.
func Command(words string, values ...string) string {
	var text strings.Builder
	text.WriteString("`rtm " + words)
	for i, value := range values {
		isOfFlag := i == 0 && strings.HasSuffix(words, "=")
		if !isOfFlag {
			text.WriteByte(' ')
			if value != "" && value[0] == '-' && !strings.Contains(text.String(), " -- ") {
				text.WriteString("-- ") // or it would be read as a flag
			}
		}
		text.WriteString(ShellWord(value))
	}
	return text.String() + "`"
}

// maxCommands is how many commands [Commands] writes, so that a line can be read.
const maxCommands = 10

// Commands is a [Command] for each of some values, in their order: for so many that they can be
// read, then with an ellipsis.
func Commands(words string, values []string) string {
	var commands []string
	for _, value := range slices.Sorted(slices.Values(values)) {
		if len(commands) == maxCommands {
			return strings.Join(commands, ", ") + ", …"
		}
		commands = append(commands, Command(words, value))
	}
	return strings.Join(commands, ", ")
}
