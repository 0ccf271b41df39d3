package samples

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"routemaster/internal/overview"
)

// codecVersion is the first byte of a packed slot. The rest is deflated: varints, and names with
// their lengths before them.
const codecVersion = 5

// maxUnpacked is the maximum size of an unpacked slot in bytes.
const maxUnpacked = 8 << 20

// errSlot is that a text is no packed slot.
var errSlot = errors.New("not a slot of the series")

// pack packs a slot into maxBytes, and leaves out what does not fit. It returns nothing if not even
// the figures of the bus fit.
func pack(s overview.Slot, maxBytes int) []byte {
	for {
		text := appendSlot(nil, s)
		packed := deflate(text)
		fits := min(float64(maxBytes)/float64(len(packed)), maxUnpacked/float64(len(text)))
		if fits >= 1 {
			return packed
		}
		if !s.HasNames() {
			return nil
		}
		// It cuts off a little more than necessary, so that the loop ends soon.
		s.Shorten(0.95 * fits)
	}
}

func deflate(text []byte) []byte {
	var b bytes.Buffer
	b.WriteByte(codecVersion)
	w, _ := flate.NewWriter(&b, flate.DefaultCompression) // fails for another level only
	_, _ = w.Write(text)                                  // a Buffer never fails
	_ = w.Close()
	return b.Bytes()
}

func appendSlot(b []byte, s overview.Slot) []byte {
	b = appendNumbers(b, s.At.UnixMilli(), s.Events, s.Unreadable, s.Scrubbed)
	b = appendNumbers(b, s.Used, s.Waiting, s.Dead, s.Busy, s.Threads, s.AllSubscribers, s.AllTopics)
	b = appendTotals(b, s.Bus)
	b = appendNumbers(b, int64(len(s.Subscribers)), int64(len(s.Topics)))
	for _, sub := range s.Subscribers {
		b = appendTotals(appendName(b, sub.Name), sub.Totals)
	}
	for _, topic := range s.Topics {
		b = appendNumbers(appendName(b, topic.Name), topic.Events)
	}
	b = appendNumbers(b, int64(len(s.JobTypes)), int64(len(s.Machines)))
	for _, t := range s.JobTypes {
		b = appendNumbers(appendName(b, t.Name), t.Succeeded, t.Failed, t.Expired, t.Waiting, t.OldestAt.UnixMilli())
	}
	for _, m := range s.Machines {
		b = appendNumbers(appendName(b, m.Name), m.Moved, m.Failed, m.Unpublished)
	}
	return b
}

func appendNumbers(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func appendName(b []byte, name string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(name))), name...)
}

func appendTotals(b []byte, t overview.Totals) []byte {
	return appendNumbers(b, t.Sent, t.Succeeded, t.Failed, t.Dropped, t.Took, t.Waited, t.Queued, t.Oldest.Milliseconds(), int64(t.Health))
}

// unpack reads a packed slot. It fails with errSlot.
func unpack(packed string) (overview.Slot, error) {
	if packed == "" || packed[0] != codecVersion {
		return overview.Slot{}, errSlot
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader([]byte(packed[1:]))), maxUnpacked))
	if err != nil {
		return overview.Slot{}, errSlot
	}
	u := unpacker{text: text}
	s := overview.Slot{
		At: time.UnixMilli(u.number()), Events: u.number(), Unreadable: u.number(), Scrubbed: u.number(),
		Used: u.number(), Waiting: u.number(), Dead: u.number(), Busy: u.number(), Threads: u.number(),
		AllSubscribers: u.number(), AllTopics: u.number(), Bus: u.totals(),
	}
	subscribers, topics := u.number(), u.number()
	for range subscribers {
		if u.failed {
			break
		}
		s.Subscribers = append(s.Subscribers, overview.NamedTotals{Name: u.name(), Totals: u.totals()})
	}
	for range topics {
		if u.failed {
			break
		}
		s.Topics = append(s.Topics, overview.TopicEvents{Name: u.name(), Events: u.number()})
	}
	s.JobTypes, s.Machines = u.services()
	if u.failed || len(u.text) > 0 {
		return overview.Slot{}, errSlot
	}
	return s, nil
}

// services reads a slot's job types and machines.
func (u *unpacker) services() (types []overview.JobTypeState, machines []overview.MachineState) {
	ofTypes, ofMachines := u.number(), u.number()
	for i := int64(0); i < ofTypes && !u.failed; i++ {
		types = append(types, overview.JobTypeState{
			Name: u.name(), Succeeded: u.number(), Failed: u.number(), Expired: u.number(), Waiting: u.number(),
			OldestAt: time.UnixMilli(u.number()),
		})
	}
	for i := int64(0); i < ofMachines && !u.failed; i++ {
		machines = append(machines, overview.MachineState{Name: u.name(), Moved: u.number(), Failed: u.number(), Unpublished: u.number()})
	}
	return types, machines
}

// unpacker reads from the rest of a text. After a failure it reads only zeros.
type unpacker struct {
	text   []byte
	failed bool
}

func (u *unpacker) number() int64 {
	n, size := binary.Varint(u.text)
	return n * u.skip(size)
}

// skip goes on by so many bytes. It returns 1, or 0 if that fails.
func (u *unpacker) skip(size int) int64 {
	if size <= 0 || size > len(u.text) {
		u.text, u.failed = nil, true
		return 0
	}
	u.text = u.text[size:]
	return 1
}

func (u *unpacker) name() string {
	length, size := binary.Uvarint(u.text)
	if size <= 0 || length > uint64(len(u.text)-size) {
		u.text, u.failed = nil, true
		return ""
	}
	name := string(u.text[size : size+int(length)])
	u.text = u.text[size+int(length):]
	return name
}

func (u *unpacker) counts() overview.Counts {
	return overview.Counts{Succeeded: u.number(), Failed: u.number(), Dropped: u.number()}
}

func (u *unpacker) totals() overview.Totals {
	return overview.Totals{
		Sent: u.number(), Counts: u.counts(), Times: overview.Times{Took: u.number(), Waited: u.number()},
		Queued: u.number(), Oldest: time.Duration(u.number()) * time.Millisecond, Health: int(u.number()),
	}
}
