package jobs

import (
	"context"
	"iter"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"routemaster/client"
	"routemaster/client/internal/header"
)

// Filter selects jobs. An empty field selects all.
type Filter struct{ Type, Status string }

// Page is a part of a list of jobs, newest first.
type Page struct {
	Jobs []Job
	// Next is where the next page begins, empty after the last.
	Next string
}

// MaxPage is how many jobs a [Page] has at most.
const MaxPage = 100

// Open yields the jobs that have not ended, newest first. An error is the last value that it
// yields.
func (j *Jobs) Open(ctx context.Context, f Filter) iter.Seq2[Job, error] {
	return jobsOf(j.OpenPages(ctx, f, "", math.MaxInt))
}

// Archived yields the jobs that have ended, newest first. An error is the last value that it
// yields.
func (j *Jobs) Archived(ctx context.Context, f Filter) iter.Seq2[Job, error] {
	return jobsOf(j.ArchivedPages(ctx, f, "", math.MaxInt))
}

// OpenPages yields the jobs that have not ended page by page, up to limit jobs. It begins at
// before, another page's Next; at the newest if before is empty. An error is the last value that it
// yields.
func (j *Jobs) OpenPages(ctx context.Context, f Filter, before string, limit int) iter.Seq2[Page, error] {
	return j.pages(ctx, "list jobs", "/v1/jobs", f, before, limit)
}

// ArchivedPages is [Jobs.OpenPages] for jobs that have ended.
func (j *Jobs) ArchivedPages(ctx context.Context, f Filter, before string, limit int) iter.Seq2[Page, error] {
	return j.pages(ctx, "list archived jobs", "/v1/archived-jobs", f, before, limit)
}

func (j *Jobs) pages(ctx context.Context, operation, path string, f Filter, before string, limit int) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for next, left := before, limit; left > 0; {
			page, err := j.page(ctx, operation, path, f, next, min(left, MaxPage))
			if !yield(page, err) || err != nil || page.Next == "" || page.Next == next {
				return
			}
			next, left = page.Next, left-len(page.Jobs)
		}
	}
}

func (j *Jobs) page(ctx context.Context, operation, path string, f Filter, before string, limit int) (page Page, err error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	for name, value := range map[string]string{"name": f.Type, "status": f.Status, "before": before} {
		if value != "" {
			query.Set(name, value)
		}
	}
	got, err := j.client.Call(ctx, client.Request{Operation: operation, Method: http.MethodGet, Path: path + "?" + query.Encode()}, &page.Jobs)
	if err != nil {
		return Page{}, err
	}
	page.Next = header.Next(got.Header, "before")
	return page, nil
}

// jobsOf yields the jobs of pages.
func jobsOf(pages iter.Seq2[Page, error]) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		for page, err := range pages {
			if err != nil {
				yield(Job{}, err)
				return
			}
			for _, job := range page.Jobs {
				if !yield(job, nil) {
					return
				}
			}
		}
	}
}
