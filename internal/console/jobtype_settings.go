package console

import (
	"context"
	"net/http"
	"strconv"

	"routemaster/client/jobs"
	"routemaster/internal/console/view"
	"routemaster/internal/format"
)

// typeSettings is the data of the page of a job type's settings.
type typeSettings struct {
	view.Settings
	// Type is the job type's name, Owner the name of the client that made it.
	Type, Owner string
	Command     string
}

// readSettings makes the form from the current settings.
func readSettings(v *Visit) (p typeSettings, err error) {
	t, err := jobs.New(v.Bus).Type(v.Context(), v.Path("type"))
	if err != nil {
		return p, err
	}
	p = typeSettings{Settings: view.NewTypeSettings(t.Type), Type: t.Name, Owner: t.Owner}
	p.Command = view.Command(http.MethodPatch, view.Path("v2", "job-types", t.Name), map[string]any{"concurrency": t.Concurrency})
	return p, nil
}

func loadTypeSettings(v *Visit) (any, error) {
	p, err := readSettings(v)
	if err == nil {
		v.FillSettings(&p.Settings)
	}
	return p, err
}

func submitTypeSettings(v *Visit) (answer Answer, err error) {
	p, err := readSettings(v)
	if err != nil {
		return answer, err
	}
	return v.SaveSettings(&p.Settings, p.Type, typePath, func(ctx context.Context, changes map[string]any) error {
		if names, ok := changes["clients"].([]string); ok && len(names) == 0 {
			changes["clients"] = nil // all
		}
		_, err := jobs.New(v.Bus).ChangeType(ctx, p.Type, changes)
		return err
	})
}

// cancelJobs is the field of a form that has how many jobs it says go with their type.
const cancelJobs = "cancel"

// unended are the jobs of a type that its deletion cancels.
func unended(t jobs.TypeInfo) int64 { return t.Counts.Queued + t.Counts.InProgress }

// deleteType asks before a job type is deleted, with the jobs that have not ended.
var deleteType = Question{
	Path: typePath + "/delete", Calls: "DELETE /v2/job-types/{name}", For: Members, Back: typePath,
	Ask: func(v *Visit) (c view.Confirm, err error) {
		t, err := jobs.New(v.Bus).Type(v.Context(), v.Path("type"))
		if err != nil {
			return c, err
		}
		c = view.Confirm{
			Title: "Delete the job type " + t.Name, Button: "Delete " + t.Name, Name: t.Name,
			Effects: []string{"No job of it can be enqueued any more. Jobs that have ended are kept for as long as before."},
			Command: view.Command(http.MethodDelete, view.Path("v2", "job-types", t.Name), nil),
		}
		if open := unended(t); open > 0 {
			c.Button += " and cancel " + format.Plural(open, "job")
			c.Effects = append(c.Effects, "What has not ended is cancelled: "+format.Plural(open, "job")+". Services may do what they have begun all the same.")
			c.Hidden = append(c.Hidden, view.Hidden{Name: cancelJobs, Value: strconv.FormatInt(open, 10)})
			c.Command = view.Command(http.MethodDelete, view.Path("v2", "job-types", t.Name)+"?force=true", nil)
		}
		return c, nil
	},
	Do: func(v *Visit) (answer Answer, err error) {
		all, name := jobs.New(v.Bus), v.Path("type")
		t, err := all.Type(v.Context(), name)
		if err != nil {
			return answer, err
		}
		shown, _ := strconv.ParseInt(v.Form(cancelJobs), 10, 64) // 0 if it said of none
		if open := unended(t); open > shown {
			return answer, Refuse(http.StatusConflict, "",
				"Nothing was done: jobs were enqueued meanwhile. It would cancel "+format.Plural(open, "job")+" now, not "+format.Count(shown)+".")
		}
		remove := all.DeleteType
		if shown > 0 {
			remove = all.DeleteTypeAndJobs
		}
		return SeeOther("Deleted the job type "+name+".", typesPath), remove(v.Context(), name)
	},
}
