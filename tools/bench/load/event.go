package load

import (
	"bytes"
	"fmt"
	"time"
)

// The URL of an event has fixed places for its publisher, its number and the time when it was due
// (ns since the Unix epoch). They are overwritten in place in a prepared request, and found again
// in a delivery without parsing the JSON around them.
const (
	urlStart = `https://bench.example/`
	urlMarks = `0000/0000000000/0000000000000000000`
	numberAt = 5
	dueAt    = 16
)

// publishedJSON is an event as it is published, of a realistic size.
const publishedJSON = `{"type":"update","url":"` + urlStart + urlMarks + `","data":{"stock":3}}`

// deliveredJSON is the same event as the bus delivers it.
const deliveredJSON = `{"topic":"bench_abcdefg","type":"update","url":"` + urlStart + urlMarks +
	`","t":1700000000000,"data":{"stock":3}}`

// refusedURL begins the URLs of the events that a receiver refuses.
const refusedURL = `https://refused.example/`

// RefusedURL is the URL of the i-th event that a receiver refuses. Such an event has no marks.
func RefusedURL(i int) string { return fmt.Sprint(refusedURL, i) }

// requestBody returns an event by itself if array is 0, else a JSON array of that many.
func requestBody(event string, array int) []byte {
	if array == 0 {
		return []byte(event)
	}
	list := bytes.Repeat([]byte(event+","), array)
	list[len(list)-1] = ']'
	return append([]byte{'['}, list...)
}

// marks is the part of an event's URL that identifies it: a slice of the text around it.
type marks []byte

func (m marks) publisher() []byte { return m[:numberAt-1] }
func (m marks) number() int64     { return digits(m[numberAt : dueAt-1]) }
func (m marks) due() int64        { return digits(m[dueAt:]) }

// stamp gives the events of a request their publisher, their due time, and numbers from first on.
func stamp(events []marks, publisher int, first int64, due time.Time) {
	for i, m := range events {
		putDigits(m.publisher(), int64(publisher))
		putDigits(m[numberAt:dueAt-1], first+int64(i))
		putDigits(m[dueAt:], due.UnixNano())
	}
}

// findMarks calls f with the marks of every event in a body, in order. It fails at a URL whose
// marks are damaged.
func findMarks(body []byte, f func(m marks)) error {
	start := []byte(urlStart)
	for {
		i := bytes.Index(body, start)
		if i < 0 {
			return nil
		}
		body = body[i+len(start):]
		if len(body) < len(urlMarks) || body[numberAt-1] != '/' || body[dueAt-1] != '/' {
			return fmt.Errorf("damaged event URL: %.60s", body)
		}
		f(marks(body[:len(urlMarks)]))
		body = body[len(urlMarks):]
	}
}

// allMarks returns the marks of every event in a body that this package has made.
func allMarks(body []byte) (all []marks) {
	_ = findMarks(body, func(m marks) { all = append(all, m) })
	return all
}

// putDigits writes a number into a place, with leading zeros.
func putDigits(place []byte, n int64) {
	for i := len(place) - 1; i >= 0; i-- {
		place[i] = byte('0' + n%10)
		n /= 10
	}
}

// digits reads a number from its place.
func digits(place []byte) (n int64) {
	for _, c := range place {
		n = n*10 + int64(c-'0')
	}
	return n
}
