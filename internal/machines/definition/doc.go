// Package definition reads the definitions of state machines, which are YAML:
//
//	placeholders:
//	  app: https://app.example
//	state_machines:
//	  welcome:
//	    feeds:
//	      - {name: profile, url: "{placeholders.app}/profiles/<label>"}
//	    states:
//	      - gate: signed_up
//	        exit_condition: metadata.confirmed
//	        triggers:
//	          - metadata: confirmed
//	        next: send_mail
//	      - action: send_mail
//	        webhook: "{placeholders.app}/mail/welcome"
//	        next: done
//	      - gate: done
//	        exit_condition: false
//
// docs/machines.md describes all keys. A file has at most 1 MiB; a definition at most 1,000
// machines of 1,000 states each, and 200,000 values, counting an alias's values again at each use.
//
// Several files are layers, and earlier ones win: maps are merged, strings, numbers, booleans and
// lists replaced. An explicit null in an earlier layer removes the key that a later one sets;
// elsewhere null counts as a missing key. Then {dotted.path}, in any string, is replaced by the
// string or number at that path of the merged layers. There is no escape.
//
// YAML is read as version 1.2, but unquoted yes, no, on and off are booleans, as in 1.1. The merge
// key << works as in 1.1 too; the last one in a map wins. Nothing in a file is executed: tags are
// refused unless they name plain values.
package definition

import (
	"routemaster/internal/machines"
)

type (

	// Warning is a problem for which a definition is not refused.
	Warning = Problem
)

// Load reads a definition. Several files are layers, and earlier ones win. It fails with [Errors].
// Warnings are returned with and without an error.
func Load(files ...File) (*machines.Definitions, []Warning, error) {
	return load(&loader{Document: Read(files...)})
}

// LoadApplied reads a definition that was applied, perhaps by an earlier version of this program:
// faults that the earlier version accepted are warnings.
func LoadApplied(file File) (*machines.Definitions, []Warning, error) {
	return load(&loader{Document: Read(file), applied: true})
}

func load(l *loader) (*machines.Definitions, []Warning, error) {
	if l.Root == nil {
		return nil, nil, l.Err()
	}
	l.ReplacePlaceholders()
	definitions := l.definitions(l.Root)
	if err := l.Err(); err != nil {
		return nil, l.Warnings(), err
	}
	return definitions, l.Warnings(), nil
}

// Merged returns the layers as one document, which loads to the same definitions: placeholders
// stay. One file is returned as it is. Merging loses comments. It fails with [Errors] if a file
// cannot be read or two do not fit, but checks nothing else.
func Merged(files ...File) ([]byte, error) {
	d := Read(files...)
	if err := d.Err(); err != nil {
		return nil, err
	}
	if len(files) == 1 {
		return files[0].Content, nil
	}
	return d.YAML()
}

// loader makes definitions of a document.
type loader struct {
	*Document
	// applied is whether the definition was applied before.
	applied bool
}

// refuseNew reports a fault that earlier versions of this program accepted: in a definition that
// was applied, it is a warning.
func (l *loader) refuseNew(at Place, format string, args ...any) {
	if l.applied {
		l.Warn(at, format, args...)
	} else {
		l.Refuse(at, format, args...)
	}
}
