// Package receipt reports the result of each event of a delivery, for subscribers with the option
// partial. The function that a handler of package client calls returns it as an error:
//
//	func receive(ctx context.Context, events []client.Event) error {
//		var results []error
//		for i, event := range events {
//			switch err := handle(event); {
//			case errors.Is(err, errUnknownAccount):
//				results = append(results, receipt.Reject(i, err.Error()))
//			case err != nil:
//				results = append(results, receipt.Retry(i))
//			}
//		}
//		return errors.Join(results...)
//	}
//
// Indexes count from 0 in events. Events without a result are acknowledged. If another error is
// joined, the bus delivers all of the events again.
package receipt

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// part is the result of some events.
type part struct {
	retry   []int
	from    *int
	rejects []reject
}

type reject struct {
	Index  int    `json:"index"`
	Reason string `json:"reason,omitempty"`
}

// Error implements error.
func (p *part) Error() string {
	switch {
	case p.from != nil:
		return fmt.Sprintf("retry from event %d", *p.from)
	case p.rejects != nil:
		return fmt.Sprintf("reject event %d: %s", p.rejects[0].Index, p.rejects[0].Reason)
	}
	return fmt.Sprintf("retry events %d", p.retry)
}

// Retry asks for events to be delivered again, later.
func Retry(indexes ...int) error { return &part{retry: indexes} }

// RetryFrom asks for an event and all after it to be delivered again, unless they are rejected. It
// is for receivers that work in order and have stopped.
func RetryFrom(index int) error { return &part{from: &index} }

// Reject asks that an event is never delivered again. If the subscriber keeps dead letters, the
// event becomes one, with the first 256 characters of the reason.
func Reject(index int, reason string) error {
	return &part{rejects: []reject{{index, reason}}}
}

// Of returns the JSON of the receipt in an error, or in errors joined by [errors.Join]. It is not
// ok if any of them is another error.
func Of(err error) (text []byte, ok bool) {
	all, ok := parts(err)
	if !ok {
		return nil, false
	}
	var receipt struct {
		Retry     []int    `json:"retry,omitempty"`
		RetryFrom *int     `json:"retry_from,omitempty"`
		Reject    []reject `json:"reject,omitempty"`
	}
	for _, p := range all {
		receipt.Retry = append(receipt.Retry, p.retry...)
		receipt.Reject = append(receipt.Reject, p.rejects...)
		if p.from != nil && (receipt.RetryFrom == nil || *p.from < *receipt.RetryFrom) {
			receipt.RetryFrom = p.from
		}
	}
	slices.Sort(receipt.Retry)
	receipt.Retry = slices.Compact(receipt.Retry)
	text, err = json.Marshal(receipt)
	return text, err == nil
}

func parts(err error) (all []*part, ok bool) {
	if joined, isJoined := err.(interface{ Unwrap() []error }); isJoined {
		for _, err := range joined.Unwrap() {
			some, ok := parts(err)
			if !ok {
				return nil, false
			}
			all = append(all, some...)
		}
		return all, true
	}
	p, ok := errors.AsType[*part](err)
	return []*part{p}, ok
}
