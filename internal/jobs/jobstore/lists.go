package jobstore

import (
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

// Open lists jobs that have not ended, the newest first. Next is the cursor of the next page, empty
// if there is none; while there is one, a page may have less jobs than asked for. It fails with
// [bus.ErrUnavailable], or a [bus.Invalid] for a cursor that is none.
func (s *Store) Open(ctx context.Context, f Filter) (list []jobs.Job, next string, err error) {
	return s.list(ctx, "open", f)
}

// Archived is [Store.Open] for jobs that have ended.
func (s *Store) Archived(ctx context.Context, f Filter) (list []jobs.Job, next string, err error) {
	return s.list(ctx, "archive", f)
}

// errBefore is the error of a cursor that is none.
var errBefore = bus.Invalidf("", "the query's before must be that of the Link of the page before")

func (s *Store) list(ctx context.Context, which string, f Filter) (list []jobs.Job, next string, err error) {
	place, id := "+inf", ""
	if f.Before != "" {
		var found bool
		place, id, found = strings.Cut(f.Before, "-")
		_, notPlace := strconv.ParseUint(place, 10, 53)
		if _, notID := jobs.ParseID(id); !found || notPlace != nil || notID != nil {
			return nil, "", errBefore
		}
	}
	reply, err := s.redis.Run(ctx, scriptJobList, which, string(f.Status), place, id, f.Limit, string(f.Type)).List()
	if err != nil {
		return nil, "", rdb.Wrap("list jobs", err)
	}
	if last := rdb.Text(reply[0]); last != "" {
		next = last + "-" + rdb.Text(reply[1])
	}
	return readJobs(reply[2:]), next, nil
}
