package view

import (
	"strconv"
	"strings"

	"routemaster/client/jobs"
)

// NewTypeSettings makes the form of a job type's settings, by their names in the JSON of the API.
func NewTypeSettings(t jobs.Type) Settings {
	url, where := "", "Empty: services fetch the jobs."
	if t.URL != nil {
		if url = *t.URL; url == "" {
			where = "Empty: the jobs go where the operator says, as now."
		}
	}
	retention := ""
	if t.Retention != nil {
		retention = strconv.FormatInt(*t.Retention, 10)
	}
	data := string(t.ScheduleData)
	if data == "null" {
		data = ""
	}
	return newSettings([]Field{
		{Name: "delivery_strategy", Label: "Delivery", Kind: Choice, Choices: []string{jobs.AtLeastOnce, jobs.AtMostOnce}, Value: t.Strategy, Hint: "At most once: a job is tried once, whatever happens."},
		{Name: "attempts", Label: "Attempts", Kind: Number, Value: strconv.Itoa(t.Attempts), Hint: "How often a job is tried at most: 1 to 32,767. 1 if it is delivered at most once."},
		{Name: "concurrency", Label: "Concurrency", Kind: Number, Value: strconv.Itoa(t.Concurrency), Hint: "How many are in progress at most, over all workers: 1 to 32,767."},
		{Name: "url", Label: "URL", Kind: Text, Value: url, Hint: "Where jobs are POSTed. " + where},
		{Name: "timeout", Label: "Time to report, ms", Kind: Number, Value: strconv.FormatInt(int64(t.Timeout), 10), Hint: "From when a service has taken a job. Empty is 5 minutes."},
		{Name: "retention", Label: "Keep ended jobs for, s", Kind: Number, Value: retention, Hint: "Empty is 7 days."},
		{Name: "schedule", Label: "Schedule", Kind: Text, Value: t.Schedule, Hint: "A cron expression of five fields. Empty is none."},
		{Name: "timezone", Label: "Time zone", Kind: Text, Value: t.Timezone, Hint: "Of the schedule, such as Europe/Paris. Empty is UTC."},
		{Name: "schedule_data", Label: "Data of its jobs", Kind: Code, Value: data, Hint: "One JSON value, for the jobs of the schedule."},
		{Name: "clients", Label: "Clients", Kind: Lines, Value: strings.Join(t.Clients, "\n"), Hint: "Who may enqueue, cancel, replay, fetch and report its jobs, one name a line. Empty is all."},
	})
}
