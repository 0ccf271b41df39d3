package jobstore

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/rdb"
)

// Filter says which jobs to list. What is zero is not set.
type Filter struct {
	Type   jobs.TypeName
	Status jobs.Status
	// Before is the cursor that came with the page before.
	Before string
	// Limit is the maximum number of jobs, at least 1.
	Limit int
}

// Which list of jobs is read.
type Which string

// The lists: of the jobs that have not ended, and of those that have.
const (
	Open     Which = "open"
	Archived Which = "archive"
)

// Place is where a job stands in a list, which goes from high places to low ones: a time in µs, or
// a little later, and the job's id.
type Place struct {
	Time int64
	ID   jobs.ID
}

// Compare is negative for a lower place than another one, and positive for a higher one.
func (p Place) Compare(to Place) int {
	return cmp.Or(cmp.Compare(p.Time, to.Time), strings.Compare(string(p.ID), string(to.ID)))
}

// String is the cursor of the page that begins behind the place.
func (p Place) String() string { return strconv.FormatInt(p.Time, 10) + "-" + string(p.ID) }

// ParsePlace is the place of a cursor. It fails with a [bus.Invalid].
func ParsePlace(cursor string) (Place, error) {
	time, id, found := strings.Cut(cursor, "-")
	n, notTime := strconv.ParseUint(time, 10, 53)
	if _, notID := jobs.ParseID(id); !found || notTime != nil || notID != nil {
		return Place{}, errBefore
	}
	return Place{int64(n), jobs.ID(id)}, nil
}

// Placed is a job, and its place in the list that was read.
type Placed struct {
	jobs.Job
	Place Place
}

// Open lists jobs that have not ended, the newest first. Next is the cursor of the next page, empty
// if there is none; while there is one, a page may have less jobs than asked for. It fails with
// [bus.ErrUnavailable], or a [bus.Invalid] for a cursor that is none.
func (s *Store) Open(ctx context.Context, f Filter) (list []jobs.Job, next string, err error) {
	return unplaced(s.Page(ctx, Open, f))
}

// Archived is [Store.Open] for jobs that have ended.
func (s *Store) Archived(ctx context.Context, f Filter) (list []jobs.Job, next string, err error) {
	return unplaced(s.Page(ctx, Archived, f))
}

func unplaced(page []Placed, next string, err error) ([]jobs.Job, string, error) {
	list := make([]jobs.Job, len(page))
	for i, job := range page {
		list[i] = job.Job
	}
	return list, next, err
}

// errBefore is the error of a cursor that is none.
var errBefore = bus.Invalidf("", "the query's before must be that of the Link of the page before")

// Page is [Store.Open] or [Store.Archived], with the places of the jobs.
func (s *Store) Page(ctx context.Context, of Which, f Filter) (page []Placed, next string, err error) {
	time, id := "+inf", ""
	if f.Before != "" {
		place, err := ParsePlace(f.Before)
		if err != nil {
			return nil, "", err
		}
		time, id = strconv.FormatInt(place.Time, 10), string(place.ID)
	}
	reply, err := s.redis.Run(ctx, scriptJobList, string(of), string(f.Status), time, id, f.Limit, string(f.Type)).List()
	if err != nil {
		return nil, "", rdb.Wrap("list jobs", err)
	}
	if last := rdb.Text(reply[0]); last != "" {
		next = last + "-" + rdb.Text(reply[1])
	}
	for _, one := range reply[2:] {
		if job, ok := readJob(one); ok {
			place := rdb.Integer(rdb.Text(one.([]any)[placeAt]), 0)
			page = append(page, Placed{job, Place{place, job.ID}})
		}
	}
	return page, next, nil
}
