package store

import (
	"context"
	"errors"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// instantList is what is known of a queue's list of instant jobs, which may be long, and moves: jobs enter at the
// left, leave at the right, and a few are put back there. So an entry keeps its distance from those left of it. The
// one that was at the left end when the list was read last is the marker; places grow to the right.
//
// The list is read from left to right: an entry that stays in it is not missed.
type instantList struct {
	store *Store
	queue bus.Queue
	jobs  map[string]job // whose places it keeps
	// marker is empty until there is something in the list; it stands at place.
	marker string
	place  int64
}

// What a reading of the list asks at once, and how far the marker may have moved from the left end meanwhile.
const (
	instantWindow = 1000
	markerSearch  = 50_000
)

// errMoved says that the list went by too fast to be read.
var errMoved = errors.New("the list of instant jobs changes too fast")

// extend reads what has come since the list was read last: all that is left of the marker, and the right end. If
// the marker is gone it reads the whole list anew.
func (l *instantList) extend(ctx context.Context) error {
	err := errMoved
	for try := 0; try < 5 && errors.Is(err, errMoved); try++ {
		err = l.extendOnce(ctx)
	}
	return err
}

func (l *instantList) extendOnce(ctx context.Context) error {
	marker, err := l.store.redis.LIndex(ctx, l.store.jobs.Instant(l.queue), 0).Result()
	if errors.Is(err, rdb.Nil) {
		l.forget()
		return nil
	}
	if err != nil {
		return err
	}
	newer, met, err := l.readNewer(ctx, marker)
	if err != nil {
		return err
	}
	if met {
		l.place -= int64(len(newer))
	} else {
		l.forget()
	}
	l.marker = marker
	for i, packed := range newer {
		l.see(packed, l.place+int64(i))
	}
	return l.readRightEnd(ctx)
}

// readNewer reads from a new marker to the one there was, or to the right end if it does not meet it.
func (l *instantList) readNewer(ctx context.Context, marker string) (newer []string, met bool, err error) {
	for shift := int64(0); ; {
		from := shift + int64(len(newer))
		at, window, err := l.read(ctx, marker, from, from+instantWindow-1)
		if err != nil {
			return nil, false, err
		}
		if at < shift {
			return nil, false, errMoved
		}
		// What came meanwhile has moved entries that are known into the window.
		for _, packed := range window[min(at-shift, int64(len(window))):] {
			if packed == l.marker {
				return newer, true, nil
			}
			newer = append(newer, packed)
		}
		if len(window) < instantWindow {
			return newer, false, nil
		}
		shift = at
	}
}

// readRightEnd sees the jobs that were put back there.
func (l *instantList) readRightEnd(ctx context.Context) error {
	length, err := l.store.redis.LLen(ctx, l.store.jobs.Instant(l.queue)).Result()
	if err != nil {
		return err
	}
	from := max(0, length-instantWindow)
	at, window, err := l.read(ctx, l.marker, from, from+2*instantWindow)
	if err != nil {
		return err
	}
	for i, packed := range window {
		if place := from + int64(i) - at; place >= 0 {
			l.see(packed, l.place+place)
		}
	}
	return nil
}

// read returns, of one moment, the index of the marker and a window of the list.
func (l *instantList) read(ctx context.Context, marker string, from, to int64) (at int64, window []string, err error) {
	reply, err := l.store.redis.Run(ctx, scriptCheckWindow, string(l.queue), marker, markerSearch, from, to).List()
	if errors.Is(err, rdb.Nil) {
		return 0, nil, errMoved
	}
	if err != nil {
		return 0, nil, err
	}
	for _, entry := range reply[1].([]any) {
		window = append(window, text(entry))
	}
	return reply[0].(int64), window, nil
}

func (l *instantList) see(packed string, place int64) {
	j := l.jobs[packed]
	if !slices.Contains(j.instant, place) {
		j.instant = append(j.instant, place)
		l.jobs[packed] = j
	}
}

// forget lets the list be read anew.
func (l *instantList) forget() {
	l.marker, l.place = "", 0
	for packed, j := range l.jobs {
		if j.instant != nil {
			j.instant = nil
			l.jobs[packed] = j
		}
	}
}
