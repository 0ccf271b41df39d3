package jobs

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"routemaster/client"
	"routemaster/client/internal/header"
)

// Filter says which jobs are meant. What is empty means all.
type Filter struct{ Type, Status string }

// Page is a part of a list of jobs, newest first.
type Page struct {
	Jobs []Job
	// Next is where the next page begins, empty after the last.
	Next string
}

// MaxPage is how many jobs a [Page] has at most.
const MaxPage = 100

// Open yields the jobs that have not ended, newest first. An error is the last that it yields.
func (j *Jobs) Open(ctx context.Context, f Filter) iter.Seq2[Job, error] {
	return pages(ctx, f, j.OpenPage)
}

// Archived yields the jobs that have ended, newest first. An error is the last that it yields.
func (j *Jobs) Archived(ctx context.Context, f Filter) iter.Seq2[Job, error] {
	return pages(ctx, f, j.ArchivedPage)
}

// OpenPage returns up to limit (1 to [MaxPage]) of the jobs that have not ended, from where another
// page's Next says; the newest if before is empty.
func (j *Jobs) OpenPage(ctx context.Context, f Filter, before string, limit int) (Page, error) {
	return j.page(ctx, "list jobs", "/v1/jobs", f, before, limit)
}

// ArchivedPage is as [Jobs.OpenPage], of the jobs that have ended.
func (j *Jobs) ArchivedPage(ctx context.Context, f Filter, before string, limit int) (Page, error) {
	return j.page(ctx, "list archived jobs", "/v1/archived-jobs", f, before, limit)
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

// pages yields all jobs of a list, which it reads page by page.
func pages(ctx context.Context, f Filter, read func(context.Context, Filter, string, int) (Page, error)) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		for before := ""; ; {
			page, err := read(ctx, f, before, MaxPage)
			if err != nil {
				yield(Job{}, err)
				return
			}
			for _, job := range page.Jobs {
				if !yield(job, nil) {
					return
				}
			}
			if page.Next == "" || page.Next == before {
				return
			}
			before = page.Next
		}
	}
}
