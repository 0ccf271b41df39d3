package wire

import (
	"fmt"
	"strings"

	"github.com/vmihailenco/msgpack/v5"

	"routemaster/internal/bus"
)

// PackJob packs a job as it is stored: MessagePack [name, [args...]]. Equal jobs have equal
// bytes.
func PackJob(job bus.Job) string {
	packed := appendString(appendLength(nil, arrayCodes, 2), job.Name)
	packed = appendLength(packed, arrayCodes, len(job.Args))
	for _, arg := range job.Args {
		packed = appendString(packed, arg)
	}
	return string(packed)
}

// UnpackJob reads a job as it is stored. Other writers may have packed it in another way than
// [PackJob] does.
func UnpackJob(packed string) (job bus.Job, err error) {
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

// ShowJob returns a packed job as readable text: its name and arguments, or its bytes if it cannot
// be read.
func ShowJob(packed string) string {
	job, err := UnpackJob(packed)
	if err != nil {
		return fmt.Sprintf("%q", packed)
	}
	return fmt.Sprintf("%q", append([]string{string(job.Name)}, job.Args...))
}
