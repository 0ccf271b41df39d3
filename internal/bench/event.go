package bench

import (
	"bytes"
	"fmt"
)

// An event is known by its URL, which has fixed places for its publisher, its number and its due time (ns since the
// Unix epoch), so that it can be written into a request in place, and found again without reading the JSON around it.
const (
	urlStart = `https://bench.example/`
	urlMarks = `0000/0000000000/0000000000000000000`
	numberAt = 5
	dueAt    = 16
)

// eventJSON is an event as it is published, of a realistic size.
const eventJSON = `{"type":"update","url":"` + urlStart + urlMarks + `","data":{"stock":3}}`

// deliveredJSON is such an event as the bus delivers it.
const deliveredJSON = `{"topic":"bench_abcdefg","type":"update","url":"` + urlStart + urlMarks + `","t":1700000000000,"data":{"stock":3}}`

// requestBody is one event, or an array of so many.
func requestBody(event string, array int) []byte {
	if array == 0 {
		return []byte(event)
	}
	list := bytes.Repeat([]byte(event+","), array)
	list[len(list)-1] = ']'
	return append([]byte{'['}, list...)
}

// marksOf finds the marks of every event in a body, in order. It fails if there is one that is not of ours.
func marksOf(body []byte) (marks [][]byte, err error) {
	err = eachMarks(body, func(m []byte) { marks = append(marks, m) })
	return marks, err
}

// eachMarks calls f with the marks of every event in a body, in order.
func eachMarks(body []byte, f func(marks []byte)) error {
	start := []byte(urlStart)
	for {
		i := bytes.Index(body, start)
		if i < 0 {
			return nil
		}
		body = body[i+len(start):]
		if len(body) < len(urlMarks) || body[numberAt-1] != '/' || body[dueAt-1] != '/' {
			return fmt.Errorf("an event's URL is not as it was published: %.60s", body)
		}
		f(body[:len(urlMarks)])
		body = body[len(urlMarks):]
	}
}

// The marks of an event.
func publisherOf(marks []byte) []byte { return marks[:numberAt-1] }
func numberOf(marks []byte) []byte    { return marks[numberAt : dueAt-1] }
func dueOf(marks []byte) []byte       { return marks[dueAt:] }

// putDigits writes a number into all of its place.
func putDigits(place []byte, n int64) {
	for i := len(place) - 1; i >= 0; i-- {
		place[i] = byte('0' + n%10)
		n /= 10
	}
}

// digits reads a number.
func digits(place []byte) (n int64) {
	for _, c := range place {
		n = n*10 + int64(c-'0')
	}
	return n
}
