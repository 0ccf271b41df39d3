package jobs

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// Filter says which jobs to list. Zero fields do not filter.
type Filter struct {
	Type   TypeName
	Status Status
	// Before is the cursor that came with the page before.
	Before string
	// Limit is the maximum number of jobs, at least 1.
	Limit int
}

// Which list of jobs is read.
type Which string

// The lists: of jobs that have not ended, and of jobs that have.
const (
	ListOpen     Which = "open"
	ListArchived Which = "archive"
)

// Place is where a job stands in a list, which goes from high places to low ones: a time in µs, or
// a little later, and the job's id.
type Place struct {
	Time int64
	ID   ID
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
	if _, notID := ParseID(id); !found || notTime != nil || notID != nil {
		return Place{}, errBefore
	}
	return Place{int64(n), ID(id)}, nil
}

// Placed is a job, and its place in the list that was read.
type Placed struct {
	Job
	Place Place
}

// Open lists jobs that have not ended, the newest first. Next is the cursor of the next page, empty
// if there is none; while there is one, a page may have fewer jobs than asked for. It fails with
// [bus.ErrUnavailable], or a [bus.Invalid] for a malformed cursor.
func (s *Store) Open(ctx context.Context, f Filter) (list []Job, next string, err error) {
	return unplaced(s.Page(ctx, ListOpen, f))
}

// Archived is [Store.Open] for jobs that have ended.
func (s *Store) Archived(ctx context.Context, f Filter) (list []Job, next string, err error) {
	return unplaced(s.Page(ctx, ListArchived, f))
}

func unplaced(page []Placed, next string, err error) ([]Job, string, error) {
	list := make([]Job, len(page))
	for i, job := range page {
		list[i] = job.Job
	}
	return list, next, err
}

// errBefore is the error for a malformed cursor.
var errBefore = bus.Invalidf("", "the query's before must be that of the Link of the page before")

// MaxPageBytes is how much data the jobs of a page have together, but for the last ones read: a
// page ends early behind them, and has less than 8 MiB.
const MaxPageBytes = 4 << 20

// Limits of the cost of a list, for each round trip and in all.
const (
	// listsPerTrip is of how many lists, of a type and status, one round trip reads the heads.
	listsPerTrip = 500
	// jobsPerTrip is how many jobs, with their data, one round trip reads.
	jobsPerTrip = 16
	// minPlaces is how many places are looked at together at least.
	minPlaces = 100
	// maxLooked is how many jobs of other statuses a page looks at, about.
	maxLooked = 500
)

// Page is [Store.Open] or [Store.Archived], with the places of the jobs. It reads the lists a slice
// at a time, so that no step keeps Redis from serving others. A job that changes meanwhile is
// listed as it was or as it is, or left out if it has left the list.
func (s *Store) Page(ctx context.Context, of Which, f Filter) (page []Placed, next string, err error) {
	before := Place{Time: math.MaxInt64}
	if f.Before != "" {
		if before, err = ParsePlace(f.Before); err != nil {
			return nil, "", err
		}
	}
	found, last, err := s.find(ctx, of, f, before)
	if err != nil {
		return nil, "", err
	}
	if len(found) > f.Limit {
		found, last = found[:f.Limit], found[f.Limit-1]
	}
	size := 0
	for some := range slices.Chunk(found, jobsPerTrip) {
		if size >= MaxPageBytes {
			break
		}
		jobs, err := s.showAll(ctx, some)
		if err != nil {
			return nil, "", err
		}
		for _, job := range jobs {
			if f.has(of, job.Status) {
				page = append(page, job)
			}
			size += len(job.Data)
		}
		if size >= MaxPageBytes && some[len(some)-1] != found[len(found)-1] {
			last = some[len(some)-1]
		}
	}
	if last != (Place{}) {
		next = last.String()
	}
	return page, next, s.redis.RequireOpen(ctx)
}

// has reports whether a list of a filter has jobs of a status.
func (f Filter) has(of Which, status Status) bool {
	return status.IsArchived() == (of == ListArchived) && (f.Status == "" || f.Status == status)
}

// showAll reads jobs. It skips removed ones.
func (s *Store) showAll(ctx context.Context, places []Place) (list []Placed, err error) {
	calls := make([]rdb.Call, len(places))
	for i, place := range places {
		calls[i] = scriptJobShow.Call(string(place.ID))
	}
	for i, result := range s.redis.RunAll(ctx, calls...) {
		shown, err := result.List()
		if rdb.Answered(err) && err != nil {
			continue // it is no record
		}
		if err != nil {
			return nil, rdb.Wrap("list jobs", err)
		}
		if job, ok := readJob(shown); ok {
			list = append(list, Placed{job, places[i]})
		}
	}
	return list, nil
}

// find returns the places before one of the jobs that are wanted, one more than the limit if there
// are as many. Otherwise last is up to where it has looked, zero if that was all.
func (s *Store) find(ctx context.Context, of Which, f Filter, before Place) (found []Place, last Place, err error) {
	lists, err := s.listsOf(ctx, of, f)
	if err != nil {
		return nil, last, err
	}
	size := max(f.Limit, minPlaces)
	for looked := 0; looked < maxLooked; looked += size {
		places, err := s.placesOf(ctx, lists, before, size+1)
		if err != nil {
			return nil, last, err
		}
		more := len(places) > size
		places = places[:min(len(places), size)]
		if more {
			before = places[size-1]
		}
		if of == ListOpen && f.Status == Queued {
			places, err = s.queuedOf(ctx, places)
		}
		if found = append(found, places...); err != nil || !more {
			return found, last, err
		}
		if len(found) > f.Limit {
			return found[:f.Limit+1], last, nil
		}
	}
	return found, before, nil
}

// queuedOf returns the places whose jobs are queued, among places of open jobs.
func (s *Store) queuedOf(ctx context.Context, places []Place) (queued []Place, err error) {
	statuses := make([]rdb.Reply[string], len(places))
	err = s.redis.Reads(ctx, "list jobs", func(pipe rdb.Commands) {
		for i, place := range places {
			statuses[i] = pipe.HGet(ctx, s.keys.Job(string(place.ID)), "status")
		}
	})
	for i, place := range places {
		if statuses[i].Val() == string(Queued) {
			queued = append(queued, place)
		}
	}
	return queued, err
}

// list is one of the lists of a type's jobs. Jobs in progress are marked in its lane.
type list struct {
	key    string
	isLane bool
}

// listsOf returns the lists that a filter is about.
func (s *Store) listsOf(ctx context.Context, of Which, f Filter) (lists []list, err error) {
	names := []string{string(f.Type)}
	if f.Type == "" {
		if names, err = s.TypeNames(ctx); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		switch name := TypeName(name); {
		case of == ListArchived:
			for _, status := range Archived {
				if f.Status == "" || f.Status == status {
					lists = append(lists, list{key: s.keys.ArchivedJobs(string(name), string(status))})
				}
			}
		case f.Status == InProgress:
			lists = append(lists, list{s.keys.Lane(bus.JobJob, string(name)), true})
		default:
			lists = append(lists, list{key: s.keys.OpenJobs(string(name))})
		}
	}
	return lists, nil
}

// placesOf returns the first places of all lists before one, the highest first, at most as many.
func (s *Store) placesOf(ctx context.Context, lists []list, before Place, most int) ([]Place, error) {
	floor := int64(0)
	if len(lists) > 1 {
		// Only the lists with the highest heads have jobs of this page, and none below the last of them.
		heads, err := s.readPlaces(ctx, lists, before, 0, 1)
		if err != nil {
			return nil, err
		}
		order := slices.DeleteFunc(indexes(len(lists)), func(i int) bool { return len(heads[i]) == 0 })
		slices.SortFunc(order, func(a, b int) int { return heads[b][0].Compare(heads[a][0]) })
		order = order[:min(len(order), most)]
		highest := make([]list, len(order))
		for i, at := range order {
			highest[i] = lists[at]
		}
		if len(order) == most {
			floor = heads[order[most-1]][0].Time
		}
		lists = highest
	}
	found, err := s.readPlaces(ctx, lists, before, floor, most)
	places := slices.Concat(found...)
	slices.SortFunc(places, func(a, b Place) int { return b.Compare(a) })
	return places[:min(len(places), most)], err
}

func indexes(count int) []int {
	all := make([]int, count)
	for i := range all {
		all[i] = i
	}
	return all
}

// readPlaces returns the first places of each list before one, down to a floor (µs), at most as
// many.
func (s *Store) readPlaces(ctx context.Context, lists []list, before Place, floor int64, most int) (found [][]Place, err error) {
	for some := range slices.Chunk(lists, listsPerTrip) {
		replies := make([]rdb.ScoredReply, len(some))
		err := s.redis.Reads(ctx, "list jobs", func(pipe rdb.Commands) {
			for i, l := range some { // one may have the time of the place before, and be behind it
				replies[i] = pipe.ZRevRangeByScoreWithScores(ctx, l.key, l.rangeOf(before, floor, most+1).By())
			}
		})
		if err != nil {
			return nil, err
		}
		for i, l := range some {
			var places []Place // no places of a list that is damaged, for which there is an error
			for _, z := range replies[i].Val() {
				member, _ := z.Member.(string)
				if place := l.place(z.Score, member); place.Compare(before) < 0 && len(places) < most {
					places = append(places, place)
				}
			}
			found = append(found, places)
		}
	}
	return found, nil
}

// inFlight is subtracted from the place of a job in progress to get its score, as IN_FLIGHT in the
// queue's lua/lib/wide.lua.
const inFlight = 1 << 52

// rangeOf returns the range of the list to read. In a lane only jobs in progress have scores below
// 0.
func (l list) rangeOf(before Place, floor int64, most int) rdb.ScoreRange {
	r := rdb.ScoreRange{Min: float64(floor), Max: float64(before.Time), Limit: int64(most)}
	if l.isLane {
		r.Min, r.Max = r.Min-inFlight, min(r.Max-inFlight, -1)
	}
	return r
}

// place returns the place of an element of the list, from its score.
func (l list) place(score float64, member string) Place {
	if !l.isLane {
		return Place{int64(score), ID(member)}
	}
	entry, err := wire.UnpackJob(member)
	if err != nil || len(entry.Args) != 1 {
		return Place{Time: math.MaxInt64} // it is before no place
	}
	return Place{int64(score) + inFlight, ID(entry.Args[0])}
}
