// Package jobs has the pages of job types and of their jobs.
package jobs

import (
	"routemaster/internal/console/page"
	"routemaster/internal/console/view"
)

// The paths of the pages.
const (
	typesPath    = "job-types"
	typePath     = typesPath + "/{type}"
	settingsPath = typePath + "/settings"
	enqueuePath  = typePath + "/enqueue"
	jobPath      = typePath + "/jobs/{job}"
	findPath     = "jobs"
)

// Pages are the pages.
func Pages() []page.Page {
	return []page.Page{
		{Path: typesPath, Template: "job-types", Nav: "Jobs", Group: page.Services, For: page.Members, Load: loadTypes},
		{Path: typePath, Template: "job-type", For: page.Members, Load: loadType},
		{Path: enqueuePath, Template: "enqueue", For: page.Members, Load: loadEnqueue, Submit: submitEnqueue, Calls: "PUT /v1/jobs/{name}/{id}"},
		{Path: settingsPath, Template: "job-type-settings", For: page.Members, Load: loadSettings, Submit: submitSettings, Calls: "PATCH /v2/job-types/{name}"},
		pause.Page(), resume.Page(), deleteType.Page(),
		{Path: jobPath, Template: "job", For: page.Members, Load: loadJob},
		{Path: findPath, Template: "find-job", For: page.Members, Load: loadFind},
		cancel.Page(), replay.Page(),
	}
}

func loadTypes(v *page.Visit) (any, error) {
	return view.JobTypes.Page(view.JobTypesOf(v.Figures), view.ParseQuery(v.Request.URL.Query())), nil
}
