package wire

import (
	"slices"
	"strconv"
	"strings"

	"routemaster/internal/bus"
)

// valuePacker turns a JSON value into MessagePack: members keep their order, integers are
// integers of 64 bits, other numbers are doubles.
type valuePacker struct {
	Scanner
	// packed is the value so far.
	packed []byte
	// names is where in packed the names of the objects are that have not ended yet.
	names []span
	// outerDepth is the number of arrays and objects around the value in the text.
	outerDepth int
	// refusal is the first reason why the value is refused although it is valid JSON. Reading goes
	// on, because a syntax error behind it is reported instead.
	refusal error
}

type span struct{ start, end int }

// pack packs the next value, which has so many arrays and objects around it. The error is
// scan.ErrSyntax.
func (p *valuePacker) pack(outerDepth int) error {
	p.packed, p.names, p.outerDepth, p.refusal = p.packed[:0], p.names[:0], outerDepth, nil
	return p.value(0)
}

// value packs a value inside others.
func (p *valuePacker) value(depth int) error {
	kind, token, err := p.Token()
	if err != nil {
		return err
	}
	switch kind {
	case '[', '{':
		if depth++; depth > bus.MaxDepth {
			p.refuse(bus.TooDeep)
		}
		if kind == '[' {
			return p.array(depth)
		}
		return p.object(depth)
	case '"':
		p.packed = appendString(p.packed, token)
	case '0':
		p.number(token)
	case 't', 'f':
		p.packed = appendBool(p.packed, kind == 't')
	case 'n':
		p.packed = appendNil(p.packed)
	}
	return nil
}

// array packs the rest of an array. In MessagePack the number of its members precedes them: it is
// known at the end.
func (p *valuePacker) array(depth int) error {
	if p.outerDepth+depth > MaxDepth {
		return ErrSyntax
	}
	start, n := len(p.packed), 0
	p.packed = append(p.packed, 0)
	var err error
	for more := !p.Take(']'); more; n++ {
		if err = p.value(depth); err != nil {
			return err
		}
		if more, err = p.More(']'); err != nil {
			return err
		}
	}
	p.packed = setLength(p.packed, start, arrayCodes, n)
	return nil
}

// object packs the rest of an object.
func (p *valuePacker) object(depth int) error {
	if p.outerDepth+depth > MaxDepth {
		return ErrSyntax
	}
	start, names := len(p.packed), objectNames{first: len(p.names)}
	p.packed = append(p.packed, 0)
	var err error
	for more := !p.Take('}'); more; {
		if err = p.name(&names); err != nil {
			return err
		}
		if err = p.value(depth); err != nil {
			return err
		}
		if more, err = p.More('}'); err != nil {
			return err
		}
	}
	p.packed = setLength(p.packed, start, mapCodes, len(p.names)-names.first)
	p.names = p.names[:names.first]
	return nil
}

// objectNames are the names of one object: the packer's names from the first on.
type objectNames struct {
	first int
	// all has them if they are more than maxListed.
	all map[string]struct{}
}

// maxListed is how many names of an object are compared one by one.
const maxListed = 16

// name packs the name of a member, which must be new in the object.
func (p *valuePacker) name(names *objectNames) error {
	name, err := p.Text()
	if err != nil || !p.Take(':') || p.knows(names, name) {
		return ErrSyntax
	}
	p.packed = appendString(p.packed, name)
	p.names = append(p.names, span{len(p.packed) - len(name), len(p.packed)})
	return nil
}

// knows reports whether an object has a name. If it has many, the name is noted.
func (p *valuePacker) knows(names *objectNames, name string) bool {
	listed := p.names[names.first:]
	if len(listed) < maxListed {
		return slices.ContainsFunc(listed, func(s span) bool { return string(p.packed[s.start:s.end]) == name })
	}
	if names.all == nil {
		names.all = map[string]struct{}{}
		for _, s := range listed {
			names.all[string(p.packed[s.start:s.end])] = struct{}{}
		}
	}
	_, known := names.all[name]
	names.all[name] = struct{}{}
	return known
}

func (p *valuePacker) number(text string) {
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
		if err != nil || f == 0 && strings.ContainsAny(mantissa, "123456789") {
			p.refuse("has a number beyond double precision; send it as a string")
		}
		p.packed = appendFloat(p.packed, f)
		return
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		p.packed = appendInt(p.packed, n)
		return
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		p.refuse("has an integer beyond 64 bits; send it as a string")
	}
	p.packed = appendUint(p.packed, n)
}

func (p *valuePacker) refuse(detail string) {
	if p.refusal == nil {
		p.refusal = bus.Invalidf("", "%s", detail)
	}
}
