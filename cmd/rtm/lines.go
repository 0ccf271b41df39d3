package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"routemaster/client"
	"routemaster/internal/bus"
	"routemaster/internal/wire"
)

// maxChunkBytes is the maximum size of a chunk's lines, and of one line, in bytes. Encoding a line
// again at most doubles it, so a chunk is always below the bus's limit.
const maxChunkBytes = client.MaxBulkBytes / 2

// chunk holds consecutive lines of one topic, which are published in one request. The lines alone
// decide where a chunk ends, so a second run makes the same chunks.
type chunk struct {
	topic  string
	events []client.Event
	// lines are the events' line numbers, from 1.
	lines []int
	// size is the size of the lines, in bytes.
	size   int
	digest [sha256.Size]byte
}

// key is the chunk's idempotency key. Only the same lines at the same place have the same key.
func (c *chunk) key() string { return hex.EncodeToString(c.digest[:]) }

// lineError is a line that is wrong.
type lineError struct {
	line int
	error
}

func (e lineError) Error() string { return "line " + strconv.Itoa(e.line) + ": " + e.error.Error() }

// chunker reads chunks.
type chunker struct {
	// topic is for lines that name none. name is part of the keys, to distinguish this load from
	// others of the same lines.
	topic, name string
	scanner     *bufio.Scanner
	line        int
	// chunks is how many have been read.
	chunks int
	// next is a line that was read, but belongs to the next chunk.
	next *parsed
}

// parsed is a line with its event.
type parsed struct {
	line  int
	text  []byte
	event client.Event
}

func newChunker(r io.Reader, topic, name string) *chunker {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 64<<10), maxChunkBytes)
	return &chunker{topic: topic, name: name, scanner: scanner}
}

// read returns the next chunk, or nil at the end. The error is a [lineError], or one of reading.
func (c *chunker) read() (*chunk, error) {
	var got chunk
	digest := sha256.New()
	for {
		p, err := c.peek()
		if err != nil {
			return nil, err
		}
		if p == nil || len(got.events) > 0 && (p.event.Topic != got.topic || len(got.events) == client.MaxBulk || got.size+len(p.text) > maxChunkBytes) {
			break
		}
		c.next = nil
		if len(got.events) == 0 {
			got.topic = p.event.Topic
			fmt.Fprintf(digest, "%q %s %d\n", c.name, got.topic, c.chunks)
		}
		digest.Write(p.text)
		digest.Write([]byte("\n"))
		got.events, got.lines, got.size = append(got.events, p.event), append(got.lines, p.line), got.size+len(p.text)
	}
	if len(got.events) == 0 {
		return nil, nil
	}
	c.chunks++
	digest.Sum(got.digest[:0])
	return &got, nil
}

// peek returns the next line that is not empty, or nil at the end.
func (c *chunker) peek() (*parsed, error) {
	for c.next == nil && c.scanner.Scan() {
		c.line++
		text := c.scanner.Bytes()
		if c.line == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
			continue
		}
		event, err := parseLine(text, c.topic)
		if err != nil {
			return nil, lineError{c.line, err}
		}
		c.next = &parsed{c.line, bytes.Clone(text), event}
	}
	if c.next != nil {
		return c.next, nil
	}
	err := c.scanner.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return nil, lineError{c.line + 1, fmt.Errorf("has more than %d bytes", maxChunkBytes)}
	}
	return nil, err
}

// parseLine reads an event, and validates it except for the rules that only the bus knows: the
// limit on data, and the topic's owner.
func parseLine(text []byte, topic string) (client.Event, error) {
	var line struct {
		Topic     string         `json:"topic"`
		Type      string         `json:"type"`
		URL       string         `json:"url"`
		Timestamp jsontext.Value `json:"timestamp"`
		Data      jsontext.Value `json:"data"`
	}
	if err := json.Unmarshal(text, &line, json.RejectUnknownMembers(true)); err != nil {
		return client.Event{}, fmt.Errorf("must be a JSON object with type, url, and perhaps topic, timestamp and data: %w", err)
	}
	if line.Topic != "" {
		topic = line.Topic
	}
	kind, known := eventWords[line.Type]
	switch {
	case topic == "":
		return client.Event{}, errors.New("has no topic; give it one, or all of them as the argument TOPIC")
	case !known:
		return client.Event{}, fmt.Errorf("type must be %s; it is %q", eventWordsText, line.Type)
	}
	if err := bus.TopicName(topic).Validate(); err != nil {
		return client.Event{}, fmt.Errorf("topic: %w", err)
	}
	if err := (&bus.Event{Type: bus.EventType(kind), URL: line.URL}).Validate(); err != nil {
		return client.Event{}, err
	}
	event := client.Event{Topic: topic, Type: kind, URL: line.URL, Data: stdjson.RawMessage(line.Data)}
	if line.Timestamp != nil && line.Timestamp.Kind() != 'n' {
		ms, ok := wire.ParseInteger(string(line.Timestamp))
		if !ok {
			return client.Event{}, errors.New("timestamp must be an integer of at most 64 bits, in ms since the Unix epoch")
		}
		event.Timestamp = time.UnixMilli(ms)
	}
	return event, nil
}
