package wire

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vmihailenco/msgpack/v5"

	"routemaster/internal/bus"
)

// PackCounter packs a counter's name and tags as the field under which it is stored: MessagePack
// [name, [[tag, value]...]].
func PackCounter(c bus.Counter) string {
	tags := c.All()
	packed := appendString(appendLength(make([]byte, 0, 128), arrayCodes, 2), c.Name)
	packed = appendLength(packed, arrayCodes, len(tags))
	for _, tag := range tags {
		packed = appendLength(packed, arrayCodes, 2)
		packed = appendString(appendString(packed, tag.Name), tag.Value)
	}
	return string(packed)
}

// UnpackCounter reads the field under which a counter is stored. A nil value of a tag is empty.
func UnpackCounter(field string) (c bus.Counter, err error) {
	dec := msgpack.NewDecoder(strings.NewReader(field))
	if n, err := dec.DecodeArrayLen(); err != nil || n != 2 {
		return c, fmt.Errorf("unpack counter: not an array of two (%d, %v)", n, err)
	}
	if c.Name, err = dec.DecodeString(); err != nil {
		return c, fmt.Errorf("unpack counter's name: %w", err)
	}
	n, err := dec.DecodeArrayLen()
	if err != nil || n > len(c.Tags) {
		return c, fmt.Errorf("unpack counter's tags: %d of them (%v)", n, err)
	}
	for i := range max(n, 0) {
		n, err := dec.DecodeArrayLen()
		if err != nil || n != 2 {
			return c, fmt.Errorf("unpack counter's tag: not an array of two (%d, %v)", n, err)
		}
		name, errName := dec.DecodeString()
		value, errValue := dec.DecodeString()
		if err := errors.Join(errName, errValue); err != nil {
			return c, fmt.Errorf("unpack counter's tag: %w", err)
		}
		c.Tags[i] = bus.Tag{Name: name, Value: value}
	}
	return c, nil
}
