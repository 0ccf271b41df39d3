package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/jobs"
	"routemaster/internal/machines"
	"routemaster/internal/signature"
	"routemaster/internal/store"
)

// Problem is an error as clients see it (RFC 9457). Detail says what to change; Pointer is the JSON
// pointer of the field at fault, if it is one field.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	// What to change.
	Detail string `json:"detail" api:"minLength=1"`
	// JSON pointer of the field at fault, if it is one field.
	Pointer string `json:"pointer,omitempty" api:"format=json-pointer"`
	// The kind of error, a word for programs: the word of the status, such as `not_found`, or a more
	// precise one.
	ID string `json:"id" api:"pattern=^[a-z_]+$"`
	// The path that the error is about; left out where it may have a token.
	Instance string `json:"instance,omitempty"`
	// All errors of a text with several, such as definitions of state machines.
	Errors []Fault `json:"errors,omitempty"`
	// The states whose labels are in the way.
	States []StateLabels `json:"states,omitempty"`
}

// Fault is an error at a place of a text. Line and Column count from 1.
type Fault struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// StateLabels is how many labels are in a state of a machine.
type StateLabels struct {
	Machine string `json:"machine"`
	State   string `json:"state"`
	Labels  int64  `json:"labels"`
}

// problemIDs are the IDs of problems that have no other, by status.
var problemIDs = map[int]string{
	http.StatusBadRequest:            "invalid_request",
	http.StatusUnauthorized:          "unauthorized",
	http.StatusForbidden:             "forbidden",
	http.StatusNotFound:              "not_found",
	http.StatusMethodNotAllowed:      "method_not_allowed",
	http.StatusConflict:              "conflict",
	http.StatusGone:                  "gone",
	http.StatusRequestEntityTooLarge: "entity_too_large",
	http.StatusTooManyRequests:       "rate_limited",
	http.StatusInternalServerError:   "server_error",
	http.StatusServiceUnavailable:    "service_unavailable",
	http.StatusInsufficientStorage:   "account_full",
}

// tokenPaths are in the paths that name a client by its token, which no error shows.
var tokenPaths = []string{"/api_tokens/", "/subscribers/"}

// instanceOf returns the path of a request for a problem, empty if it may have a token: one that
// names a client or, by mistake, the sender's own.
func instanceOf(r *http.Request) string {
	path := r.URL.Path
	sent, _ := BasicCredentials(r)
	token := ""
	if info, ok := r.Context().Value(requestInfoKey{}).(*requestInfo); ok {
		token = string(info.client.Token)
	}
	for _, segment := range strings.Split(path, "/") {
		if segment != "" && (segment == token || strings.HasPrefix(sent, segment+":") || strings.HasSuffix(sent, ":"+segment)) {
			return ""
		}
	}
	for _, part := range tokenPaths {
		if strings.Contains(path, part) {
			return ""
		}
	}
	return path
}

// Error implements error, so that functions of handlers can return a problem.
func (p *Problem) Error() string { return p.Detail }

// located is an error about one value of a request.
type located struct {
	error
	pointer string
}

func (l *located) Unwrap() error { return l.error }

// At has an error point at a value of the request, by its JSON pointer.
func At(pointer string, err error) error {
	if err == nil {
		return nil
	}
	return &located{err, pointer}
}

// problems are the errors of the packages below, as clients see them. Names in braces in a command
// of rtm are parameters of the request's path: see [fillCommands].
var problems = []struct {
	err     error
	problem Problem
}{
	{bus.ErrTopicClaimed, Problem{
		Status: http.StatusForbidden, Detail: "the topic is not this client's; only its publisher may do that",
	}},
	{bus.ErrIdempotencyKeyReused, Problem{
		Status: http.StatusConflict,
		Detail: "another request was sent with this Idempotency-Key, which the bus still remembers; use a new key for a new request",
	}},
	{bus.ErrTokenTaken, Problem{
		Status: http.StatusConflict, Pointer: "/token",
		Detail: "the token is another client's; send another, or none to have one made",
	}},
	{bus.ErrTooManyBatches, Problem{
		Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("the events would open more than %d batches, as many for each of the topic's subscribers as its max asks for; "+
			"nothing was stored: send fewer events at once", bus.MaxOpenedBatches),
	}},
	{bus.ErrTopicUnknown, Problem{
		Status: http.StatusNotFound, Detail: "there is no such topic; GET /topics lists them",
	}},
	{bus.ErrTokenUnknown, Problem{
		Status: http.StatusNotFound, Detail: "there is no such token; GET /api_tokens lists them",
	}},
	{bus.ErrManyTokens, Problem{
		Status: http.StatusBadRequest,
		Detail: "several tokens have this name; send the token that is meant: GET /api_tokens?client=NAME lists them with their last use",
	}},
	{bus.ErrNotSubscribed, Problem{
		Status: http.StatusNotFound, Detail: "the client has no such subscription; POST /subscription (`rtm sub add URL TOPIC`) makes one, GET /subscriptions lists all",
	}},
	{store.ErrLetterUnknown, Problem{
		Status: http.StatusNotFound, Detail: "there is no such dead letter; GET /subscriber/dead_letters lists them",
	}},
	{store.ErrNoHistory, Problem{
		Status: http.StatusNotFound, Detail: "the topic keeps no history; PUT /topics/{name}/history, by its publisher, has it keep one",
	}},
	{inspect.ErrUnknownBatch, Problem{
		Status: http.StatusNotFound, Detail: "there is no such batch in the queue; GET /subscriber/batches lists them",
	}},
	{inspect.ErrInFlight, Problem{
		Status: http.StatusConflict, Detail: "the batch is being delivered; try again later",
	}},
	{store.ErrReplayUnknown, Problem{
		Status: http.StatusNotFound, Detail: "there is no such replay; GET /subscriber/replays lists them",
	}},
	{store.ErrReplayNotSubscribed, Problem{
		Status: http.StatusConflict, Pointer: "/topic", Detail: "the client is not subscribed to the topic; only subscribers of a topic can have it replayed",
	}},
	{store.ErrReplayNoHistory, Problem{
		Status: http.StatusConflict, Pointer: "/topic", Detail: "the topic keeps no history; its publisher or the operator can have it keep one",
	}},
	{store.ErrNothingToReplay, Problem{
		Status: http.StatusConflict, Detail: "the topic's history has no events in this range; GET /topics/{topic}/history shows what it has",
	}},
	{store.ErrReplayRunning, Problem{
		Status: http.StatusConflict, Pointer: "/topic",
		Detail: "a replay of this topic is running; wait until it is done, or cancel it: GET /subscriber/replays lists them",
	}},
	{store.ErrTooManyReplays, Problem{
		Status: http.StatusConflict,
		Detail: fmt.Sprintf("there are %d replays that run or have events in the queue; wait until one is done", store.MaxReplaysKept),
	}},
	{bus.ErrTestWaits, Problem{
		Status: http.StatusConflict, Detail: "a test event is already waiting; GET /subscriber/attempts will have its result",
	}},
	{bus.ErrSecretUnknown, Problem{
		Status: http.StatusNotFound, Detail: "there is no such secret; GET /subscriber/secrets lists them",
	}},
	{bus.ErrTooManySecrets, Problem{
		Status: http.StatusConflict,
		Detail: fmt.Sprintf("there are %d secrets that have not expired; remove one, or have the others expire at once", signature.MaxSecrets),
	}},
	{jobs.ErrUnknownType, Problem{
		Status: http.StatusNotFound, ID: "job_type_not_found", Detail: "there is no such job type; GET /v2/job-types lists them",
	}},
	{jobs.ErrTypeExists, Problem{
		Status: http.StatusBadRequest, ID: "invalid_parameter", Pointer: "/name",
		Detail: "there is a job type of that name; choose another, or change that one with PATCH /v2/job-types/{name}",
	}},
	{jobs.ErrNotOwner, Problem{
		Status: http.StatusForbidden, Detail: "the job type is another client's; only the one that made it may do that, and the operator",
	}},
	{jobs.ErrNotClient, Problem{
		Status: http.StatusForbidden, Detail: "the job type is for the clients that its clients names, and this is none of them; " +
			"the client that made the type, or the operator, adds this one with PATCH /v2/job-types/{name}",
	}},
	{jobs.ErrTypeHasJobs, Problem{
		Status: http.StatusConflict,
		Detail: "jobs of the type are queued or in progress; wait until they have ended, or send ?force=true to have them cancelled",
	}},
	{jobs.ErrInvalidUUID, Problem{Status: http.StatusBadRequest, ID: "invalid_uuid", Detail: jobs.ErrInvalidUUID.Error()}},
	{jobs.ErrInvalidPrefix, Problem{Status: http.StatusBadRequest, ID: "invalid_prefix", Detail: jobs.ErrInvalidPrefix.Error()}},
	{jobs.ErrUnknownJob, Problem{
		Status: http.StatusNotFound, Detail: "there is no such job; it was never enqueued, or it ended so long ago that it is not kept any more",
	}},
	{jobs.ErrOtherType, Problem{
		Status: http.StatusNotFound, ID: "job_not_found", Detail: "the job is of another type; GET /v1/jobs/{id} shows which",
	}},
	{jobs.ErrManyTypes, Problem{
		Status: http.StatusConflict, Detail: "jobs of several types have this id; name the type, as in /v1/jobs/{name}/{id}",
	}},
	{jobs.ErrQueued, Problem{
		Status: http.StatusBadRequest, ID: "invalid_replay_attempt", Detail: "the job is still queued; wait until it has ended",
	}},
	{jobs.ErrStaleAttempt, Problem{
		Status: http.StatusConflict, ID: "stale_attempt", Pointer: "/attempt",
		Detail: "this is not the job's attempt, or not any more; nothing was changed: give up this attempt",
	}},
	{jobs.ErrReported, Problem{
		Status: http.StatusConflict, ID: "already_reported", Pointer: "/status",
		Detail: "another outcome of this attempt was reported before, and stands",
	}},
	{jobs.ErrCancelled, Problem{
		Status: http.StatusConflict, ID: "job_already_archived", Detail: "the job was cancelled; nothing was changed: give it up",
	}},
	{jobs.ErrArchived, Problem{
		Status: http.StatusConflict, ID: "job_already_archived", Detail: "the job has ended; GET /v1/jobs/{id} shows how",
	}},
	{jobs.ErrRemoved, Problem{
		Status: http.StatusBadRequest, ID: "job_already_archived", Detail: "the copy that this Idempotency-Key made has ended, and was removed; " +
			"jobs of this type are tried at most once: send another key",
	}},
	{jobs.ErrNotInProgress, Problem{
		Status: http.StatusConflict, Detail: "the job is not in progress, so it has no deadline; GET /v1/jobs/{id} shows its status",
	}},
	{jobs.ErrNotPull, Problem{
		Status: http.StatusConflict, Detail: "jobs of this type are not fetched but POSTed to its url; set that to null to have them fetched",
	}},
	{machines.ErrUnknownMachine, Problem{
		Status: http.StatusNotFound, Detail: "there is no such state machine; GET /state-machines (`rtm machine list`) lists them",
	}},
	{machines.ErrUnknownLabel, Problem{
		Status: http.StatusNotFound, Detail: "there is no such label; POST (`rtm label add {machine} {label}`) makes it",
	}},
	{machines.ErrLabelDeleted, Problem{
		Status: http.StatusGone, Detail: "the label was deleted; its name can be used again 24 hours after that",
	}},
	{machines.ErrLabelExists, Problem{
		Status: http.StatusConflict, Detail: "there is a label of that name; PATCH (`rtm label set {machine} {label} PATH=VALUE`) changes its metadata",
	}},
	{machines.ErrNotClient, Problem{
		Status: http.StatusForbidden, Detail: "the state machine is for the clients that its clients names, and this is none of them; " +
			"the operator adds this one to the definition (PUT /state-machines, `rtm machine apply FILE`)",
	}},
	{machines.ErrNotErrored, Problem{
		Status: http.StatusConflict, Detail: "the label is not errored: there is nothing to try again",
	}},
	{machines.ErrNotInGate, Problem{
		Status: http.StatusConflict, Detail: "the label is not in a gate; its action is tried by itself",
	}},
	{machines.ErrChanged, Problem{
		Status: http.StatusConflict, Detail: "others are changing the same; nothing was changed: try again",
	}},
	{machines.ErrContended, Problem{
		Status: http.StatusServiceUnavailable, ID: "label_contended",
		Detail: "many changes of this label are under way; nothing of this request was stored: send it again later, or fewer at once",
	}},
	{machines.ErrReplacing, Problem{
		Status: http.StatusServiceUnavailable, ID: "machines_replaced",
		Detail: "the state machines are being replaced; nothing of this request was stored: send it again later",
	}},
	{bus.ErrOverloaded, Problem{
		Status: http.StatusServiceUnavailable,
		Detail: "more comes in than can be stored; nothing of this request was stored: send it again later",
	}},
	{bus.ErrTopicRelayed, Problem{
		Status: http.StatusServiceUnavailable,
		Detail: "events of the topic are still on their way to other partitions, and the topic was not deleted: a worker must run, " +
			"and carry them there; then send the request again",
	}},
	{bus.ErrTopicBusy, Problem{
		Status: http.StatusServiceUnavailable,
		Detail: "others delete the topic, or subscribe to it, at this moment, and it was not deleted by this request: send it again",
	}},
	{bus.ErrUnavailable, Problem{
		Status: http.StatusServiceUnavailable,
		Detail: "the bus cannot reach its storage; nothing is known to be stored: send the request again later",
	}},
}

var internalError = Problem{Status: http.StatusInternalServerError, Detail: "an error in the bus; it has been logged"}

// problemOf returns an error as clients see it. It is not ok when the error is not expected to
// reach clients; then the problem is internalError.
func problemOf(err error) (p Problem, ok bool) {
	if at, found := errors.AsType[*located](err); found {
		p, ok = problemOf(at.error)
		p.Pointer = at.pointer
		return p, ok
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return *p, true
	}
	if invalid, ok := errors.AsType[*bus.Invalid](err); ok {
		return Problem{Status: http.StatusBadRequest, Detail: invalid.Detail, Pointer: invalid.Pointer, ID: invalid.ID}, true
	}
	if limit, ok := errors.AsType[*bus.TopicLimitError](err); ok {
		return Problem{Status: http.StatusConflict, Detail: limit.Error()}, true
	}
	if full, ok := errors.AsType[*account.FullError](err); ok {
		return Problem{Status: http.StatusInsufficientStorage, Detail: full.Error()}, true
	}
	for _, known := range problems {
		if errors.Is(err, known.err) {
			return known.problem, true
		}
	}
	return internalError, false
}
