package jobs

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"routemaster/client"
	"routemaster/client/internal/header"
)

// Filter says which jobs are meant. What is empty means all.
type Filter struct{ Type, Status string }

// Open yields the jobs that have not ended, newest first. An error is the last that it yields.
func (j *Jobs) Open(ctx context.Context, f Filter) iter.Seq2[Job, error] {
	return j.pages(ctx, "list jobs", "/v1/jobs", f)
}

// Archived yields the jobs that have ended, newest first. An error is the last that it yields.
func (j *Jobs) Archived(ctx context.Context, f Filter) iter.Seq2[Job, error] {
	return j.pages(ctx, "list archived jobs", "/v1/archived-jobs", f)
}

// pages yields all jobs of a list, which it reads page by page.
func (j *Jobs) pages(ctx context.Context, operation, path string, f Filter) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		query := url.Values{}
		if f.Type != "" {
			query.Set("name", f.Type)
		}
		if f.Status != "" {
			query.Set("status", f.Status)
		}
		for {
			var page []Job
			got, err := j.client.Call(ctx, client.Request{Operation: operation, Method: http.MethodGet, Path: path + "?" + query.Encode()}, &page)
			if err != nil {
				yield(Job{}, err)
				return
			}
			for _, job := range page {
				if !yield(job, nil) {
					return
				}
			}
			next := header.Next(got, "before")
			if next == "" || next == query.Get("before") {
				return
			}
			query.Set("before", next)
		}
	}
}
