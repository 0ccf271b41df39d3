package app

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/joho/godotenv"
)

// envFileName is in the working directory.
const envFileName = ".env"

// readEnvFile reads the .env file; nil if there is none. No error quotes it, as its lines may be
// secret.
func readEnvFile() (map[string]string, error) {
	content, err := os.ReadFile(envFileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	var values map[string]string
	if err == nil {
		values, err = godotenv.UnmarshalBytes(content)
	}
	if err != nil {
		return nil, errors.New("the .env file cannot be read: it must have lines like NAME=value")
	}
	return values, checkReferences(content, values)
}

// These stand for $ and \$ in a text. Neither occurs in one: they are no characters.
const dollar, escapedDollar = "\ufdd0", "\ufdd1"

// reference matches the texts that the library replaces with a variable of the file.
var reference = regexp.MustCompile(dollar + `\(?\{?([A-Z0-9_]+)?\}?`)

// checkReferences refuses a value in which the library has replaced a $ and the text after it with
// nothing, as in a password that has a $ by chance. It reads the file again with other characters
// in place of $, so that the values come as they were written, except for their quotes.
func checkReferences(content []byte, values map[string]string) error {
	written, err := godotenv.Unmarshal(strings.NewReplacer(`\$`, escapedDollar, "$", dollar).Replace(string(content)))
	if err != nil {
		return errors.New("the .env file cannot be read: write the values that have a $ in single quotes")
	}
	asWritten := strings.NewReplacer(escapedDollar, `\$`, dollar, "$")
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if values[name] == asWritten.Replace(written[name]) {
			continue
		}
		known := true
		expanded := reference.ReplaceAllStringFunc(written[name], func(text string) string {
			of := reference.FindStringSubmatch(text)[1]
			if of == "" {
				return text
			}
			known = known && values[of] != ""
			return values[of]
		})
		if !known || values[name] != strings.NewReplacer(escapedDollar, "$", dollar, "$").Replace(expanded) {
			return fmt.Errorf("%s of the .env file has a $ before the name of a variable that the file does not set above it: "+
				"write the value in single quotes to keep the $", name)
		}
	}
	return nil
}
