package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/vmihailenco/msgpack/v5"

	"routemaster/internal/bus"
)

// PackedEvent is an event as it is stored: MessagePack
// ["e", {"t": ms, "o": topic, "y": type, "u": url, "d": data or nil}], keys in that order.
// It is a string since that is what comes from Redis: a worker holds those of all its deliveries, and copies none.
type PackedEvent string

// packJob packs a job as MessagePack [name, [args...]].
func packJob(job bus.Job) string {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	_ = errors.Join(enc.EncodeArrayLen(2), enc.EncodeString(string(job.Name)), enc.EncodeArrayLen(len(job.Args)))
	for _, arg := range job.Args {
		_ = enc.EncodeString(arg) // a buffer takes all
	}
	return buf.String()
}

func unpackJob(packed string) (job bus.Job, err error) {
	dec := msgpack.NewDecoder(strings.NewReader(packed))
	if n, err := dec.DecodeArrayLen(); err != nil || n != 2 {
		return job, fmt.Errorf("unpack job: not an array of two (%d, %v)", n, err)
	}
	name, err := dec.DecodeString()
	if err != nil {
		return job, fmt.Errorf("unpack job's name: %w", err)
	}
	job.Name = bus.JobName(name)
	n, err := dec.DecodeArrayLen()
	if err != nil {
		return job, fmt.Errorf("unpack job's arguments: %w", err)
	}
	for range n {
		arg, err := dec.DecodeString()
		if err != nil {
			return job, fmt.Errorf("unpack job's arguments: %w", err)
		}
		job.Args = append(job.Args, arg)
	}
	return job, nil
}
