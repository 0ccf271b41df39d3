package console

import (
	"routemaster/internal/console/view"
)

// The paths of the pages.
const (
	typesPath        = "job-types"
	typePath         = typesPath + "/{type}"
	typeSettingsPath = typePath + "/settings"
	enqueuePath      = typePath + "/enqueue"
	jobPath          = typePath + "/jobs/{job}"
	findPath         = "jobs"
)

// jobPages are the pages.
func jobPages() []Page {
	return []Page{
		{Path: typesPath, Template: "job-types", Nav: "Jobs", Group: Services, For: Members, Load: loadTypes},
		{Path: typePath, Template: "job-type", For: Members, Load: loadType},
		{Path: enqueuePath, Template: "enqueue", For: Members, Load: loadEnqueue, Submit: submitEnqueue, Calls: "PUT /v1/jobs/{name}/{id}"},
		{Path: typeSettingsPath, Template: "job-type-settings", For: Members, Load: loadTypeSettings, Submit: submitTypeSettings, Calls: "PATCH /v2/job-types/{name}"},
		pauseType.Page(), resume.Page(), deleteType.Page(),
		{Path: jobPath, Template: "job", For: Members, Load: loadJob},
		{Path: findPath, Template: "find-job", For: Members, Load: loadFind},
		cancel.Page(), replayJob.Page(),
	}
}

func loadTypes(v *Visit) (any, error) {
	return view.JobTypes.Page(view.JobTypesOf(v.Figures), view.ParseQuery(v.Request.URL.Query())), nil
}
