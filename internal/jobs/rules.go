package jobs

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"routemaster/internal/bus"
)

// The ids of refusals, which clients branch on.
const (
	missingParameter   = "missing_parameter"
	forbiddenParameter = "forbidden_parameter"
	invalidParameter   = "invalid_parameter"
	invalidStrategy    = "invalid_delivery_strategy"
	invalidAttempts    = "invalid_attempts"
)

// refuse makes a [bus.Invalid] with an id.
func refuse(id, pointer, format string, args ...any) error {
	return &bus.Invalid{ID: id, Pointer: pointer, Detail: fmt.Sprintf(format, args...)}
}

// Validate checks the fields that clients set of a type, except its URL: see [Type.ValidateURL].
// The error is a [bus.Invalid] with an id, and points at the first wrong field, in the order in
// which existing clients expect it. Fields that are zero and must not be count as missing.
func (t *Type) Validate() error {
	for _, check := range []func() error{
		t.Name.Validate, t.validateStrategy, t.validateLimits, t.validateTimes, t.validateSchedule, t.validateClients,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// typeNames matches the names that types may have, except for names that begin like a job's id or
// that a path cannot contain. The service that this one replaces had no rule.
var typeNames = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,255}$`)

// Validate checks the name of a type that is to be made. It fails as [Type.Validate] does.
func (n TypeName) Validate() error {
	const rule = "1 to 255 characters of A-Z, a-z, 0-9, dot, underscore, colon and hyphen"
	switch {
	case n == "":
		return refuse(missingParameter, "/name", "is required: %s", rule)
	case n == MetaShutdown:
		return refuse(forbiddenParameter, "/name", "must be another name; nobody needs this type: what is changed of job types holds at once")
	case strings.HasPrefix(string(n), IDPrefix):
		return refuse(invalidParameter, "/name", `must not begin with "job_", as the ids of jobs do`)
	case n == "." || n == "..":
		return refuse(invalidParameter, "/name", "must be another name; in a path this one means something else")
	case !typeNames.MatchString(string(n)):
		return refuse(invalidParameter, "/name", "must be %s", rule)
	}
	return nil
}

func (t *Type) validateStrategy() error {
	const allowed = "at_least_once (its jobs may be tried again) or at_most_once"
	switch t.Strategy {
	case AtLeastOnce, AtMostOnce:
		return nil
	case "":
		return refuse(missingParameter, "/delivery_strategy", "is required: %s", allowed)
	}
	return refuse(invalidStrategy, "/delivery_strategy", "must be %s", allowed)
}

func (t *Type) validateLimits() error {
	switch {
	case t.Strategy == AtMostOnce && t.Attempts > 1:
		return refuse(invalidAttempts, "/attempts", "must be 1, since the strategy is at_most_once")
	case t.Attempts < 1 || t.Attempts > MaxAttempts:
		return refuseLimit("/attempts", t.Attempts, MaxAttempts, "how often a job is tried at most")
	case t.Concurrency < 1 || t.Concurrency > MaxConcurrency:
		return refuseLimit("/concurrency", t.Concurrency, MaxConcurrency, "how many jobs are in progress at most")
	}
	return nil
}

// refuseLimit refuses a number that is not 1 to limit. Zero may be one that was left out.
func refuseLimit(pointer string, n, limit int, meaning string) error {
	required := ""
	if n == 0 {
		required = "is required, and "
	}
	return refuse(invalidParameter, pointer, "%smust be 1 to %d: %s", required, limit, meaning)
}

func (t *Type) validateTimes() error {
	switch {
	case t.Timeout < MinTimeout || t.Timeout > MaxTimeout:
		return refuse(invalidParameter, "/timeout", "must be %d to %d ms", MinTimeout.Milliseconds(), MaxTimeout.Milliseconds())
	case t.Retention < 0 || t.Retention > MaxRetention:
		return refuse(invalidParameter, "/retention", "must be 0 to %d s", MaxRetention/time.Second)
	}
	return nil
}

// NextTime returns the first time of the type's schedule after a time; zero if it has no schedule.
func (t *Type) NextTime(after time.Time) time.Time {
	times, err := ParseSchedule(t.Schedule, t.Timezone)
	if err != nil { // also if it has none
		return time.Time{}
	}
	return times.Next(after)
}

func (t *Type) validateSchedule() error {
	const alone = "is of use only beside a schedule; send both or neither"
	switch {
	case t.Schedule == "" && t.Timezone != "":
		return refuse(invalidParameter, "/timezone", alone)
	case t.Schedule == "" && t.ScheduleData != nil:
		return refuse(invalidParameter, "/schedule_data", alone)
	case t.Schedule == "":
		return nil
	case len(t.Schedule) > MaxSchedule:
		return refuse(invalidParameter, "/schedule", "has %d bytes; at most %d are allowed", len(t.Schedule), MaxSchedule)
	case len(t.ScheduleData) > MaxData:
		return refuse(invalidParameter, "/schedule_data", "has %d bytes without white space; at most %d are allowed", len(t.ScheduleData), MaxData)
	case bus.IsTooDeep(t.ScheduleData):
		return refuse(invalidParameter, "/schedule_data", "%s", bus.TooDeep)
	}
	const always = "* * * * *"
	if _, err := ParseSchedule(always, t.Timezone); err != nil {
		return refuse(invalidParameter, "/timezone", "%s", err)
	}
	if _, err := ParseSchedule(t.Schedule, t.Timezone); err != nil {
		return refuse(invalidParameter, "/schedule", "%s", err)
	}
	return nil
}

func (t *Type) validateClients() (err error) {
	if t.Clients == nil {
		return nil
	}
	t.Clients.Check(func(index int, fault string) {
		pointer := "/clients"
		if index >= 0 {
			pointer = fmt.Sprintf("/clients/%d", index)
		}
		err = cmp.Or(err, refuse(invalidParameter, pointer, "%s", fault))
	})
	return err
}

// ValidateURL checks where the jobs of a type go: its host must not be denied and, without a URL,
// the operator must have configured a downstream, unless services fetch the jobs. It fails as
// [Type.Validate] does.
func (t *Type) ValidateURL(deny bus.DenyList, downstream bool) error {
	const pointer = "/url"
	switch {
	case t.Pull || t.URL == "" && downstream:
		return nil
	case t.URL == "":
		return refuse(missingParameter, pointer, "is required: an https URL that the jobs are POSTed to, or null if services fetch them; "+
			"it can be left out only where the operator has set DOWNSTREAM_URL")
	}
	u, err := bus.ParseHTTPS(t.URL)
	switch {
	case err != nil:
		return refuse(invalidParameter, pointer, "%s", err)
	case u.User != nil:
		return refuse(invalidParameter, pointer, "must not have a user name or a password")
	case strings.Contains(t.URL, "#"):
		return refuse(invalidParameter, pointer, "must not have a fragment")
	case deny.DeniesHost(u):
		return refuse(invalidParameter, pointer, bus.DeniedHost)
	}
	return nil
}
