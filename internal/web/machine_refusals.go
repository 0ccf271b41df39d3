package web

import (
	"errors"
	"fmt"
	"net/http"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/web/rest"
)

// refusal returns an error as a problem, if it has more to say than its text.
func refusal(err error) error {
	if wrong, ok := errors.AsType[definition.Errors](err); ok && len(wrong) > 0 {
		first := faultOf(wrong[0])
		detail := fmt.Sprintf("line %d, column %d: %s", first.Line, first.Column, first.Message)
		if len(wrong) > 1 {
			detail = fmt.Sprintf("%s; errors has all %d", detail, len(wrong))
		}
		return &rest.Problem{Status: http.StatusBadRequest, ID: "invalid_definitions", Detail: detail, Errors: faults(wrong)}
	}
	if resting, ok := errors.AsType[*machines.LabelsRestError](err); ok {
		problem := &rest.Problem{Status: http.StatusConflict, ID: "labels_rest", Detail: resting.Error()}
		for _, s := range resting.States {
			problem.States = append(problem.States, rest.StateLabels{Machine: string(s.Machine), State: string(s.State), Labels: s.Labels})
		}
		return problem
	}
	return err
}

// faults are the problems of definitions as clients see them.
func faults(problems []definition.Problem) []rest.Fault {
	list := []rest.Fault{}
	for _, p := range problems {
		list = append(list, faultOf(p))
	}
	return list
}

func faultOf(p definition.Problem) rest.Fault {
	return rest.Fault{File: p.File, Line: p.Line, Column: p.Column, Message: p.Message}
}

// invalidQuery is the error of a value of the query.
func invalidQuery(format string, args ...any) error {
	return &bus.Invalid{ID: "invalid_parameter", Detail: fmt.Sprintf(format, args...)}
}
