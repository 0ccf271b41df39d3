package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/machines"
	"routemaster/internal/machines/machinestest"
)

// newcomers is a file of the form that the service this one takes the place of has in its example.
const newcomers = `
state_machines:
  newcomers:
    feeds:
      - name: tests
        url: URL/tests/<label>

    states:
      - gate: start
        triggers:
          - interval: 1m
        exit_condition: >
          feeds.tests.has_new_mails is defined
        next:
          type: context
          path: feeds.tests.has_new_mails
          default: send_welcome
          destinations:
            - value: true
              state: send_new_welcome

      - action: send_welcome
        webhook: URL/hooks/send_welcome
        next:
          type: constant
          state: choose

      - action: send_new_welcome
        webhook: URL/hooks/send_new_welcome
        next:
          type: constant
          state: choose

      - action: choose
        webhook: URL/hooks/choose
        next:
          type: constant
          state: wait_for_choice

      - gate: wait_for_choice
        triggers:
          - metadata: chosen.first
        exit_condition: >
          metadata.chosen.first and
          (feeds.tests.has_new_mails is defined)
        next:
          type: constant
          state: wait_for_evening

      - gate: wait_for_evening
        triggers:
          - time: 18h30m
        exit_condition: >
          12h has passed since history.entered_state
        next:
          type: constant
          state: send_choice

      - action: send_choice
        webhook: URL/hooks/send_choice
        next:
          type: constant
          state: end

      - gate: end
        exit_condition: false

plugins:
  logging:

    - class: routemaster.logging:PythonLogger
      kwargs:
        log_level: DEBUG

    - class: routemaster_prometheus:PrometheusLogger
      kwargs:
        path: /metrics
`

func TestTheOriginalsExampleRuns(t *testing.T) {
	eachServed(t, newcomers, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		f.Now = time.Date(2026, 11, 23, 12, 0, 30, 0, time.Local)
		f.Create("newcomers", "88625", `{}`)
		s.Answer(machinestest.With(200, `{"has_new_mails": true}`))
		f.Pass(time.Minute)
		assert.Equal(t, []string{"GET /tests/88625", "POST /hooks/send_new_welcome", "POST /hooks/choose"}, requests(s))
		f.Change("newcomers", "88625", `{"chosen": {"first": true}}`)
		assert.Equal(t, []string{"GET /tests/88625"}, requests(s))
		f.Pass(18*time.Hour + 30*time.Minute - 12*time.Hour - time.Minute)
		assert.Empty(t, requests(s), "half past six, but too early")
		f.Pass(24 * time.Hour)
		assert.Equal(t, []string{"POST /hooks/send_choice"}, requests(s))
		assert.Equal(t, states{"start", "send_new_welcome", "choose", "wait_for_choice", "wait_for_evening", "send_choice", "end"},
			f.Route("newcomers", "88625"))
	})
}

// requests are the method and path of each call that a service got.
func requests(s *machinestest.Service) (got []string) {
	for _, call := range s.Calls() {
		got = append(got, call.Method+" "+call.Path)
	}
	return got
}

// TestTheSnippetsOfTheSeedRun has the condition and the feeds of the founding document.
func TestTheSnippetsOfTheSeedRun(t *testing.T) {
	eachServed(t, `
state_machines:
  drip_feed:
    feeds:
    - name: split_tests
      url: URL/user/<label>
    - name: extra_config
      url: URL/<state_machine>
    states:
    - gate: waiting
      triggers:
      - time: 18h30m
        timezone: Europe/London
      - interval: 1h
      - metadata: has_recommendations
      exit_condition: |
        metadata.has_recommendations and
        12h has passed since system.entered_state and
        system.time >= 18:30
      timezone: Europe/London
      next: choosing
    - gate: choosing
      triggers: [{event: entry}]
      exit_condition: feeds.split_tests.variant = feeds.extra_config.variant
      next: end
    - gate: end
      exit_condition: false
`, func(t *testing.T, f *machinestest.Fixture, s *machinestest.Service) {
		s.Answer(machinestest.With(200, `{"variant": "b"}`))
		f.Now = time.Date(2026, 8, 4, 6, 0, 0, 0, time.UTC)
		f.Create("drip_feed", "early", `{}`)
		f.Change("drip_feed", "early", `{"has_recommendations": true}`)
		f.Create("drip_feed", "none", `{}`)
		f.Pass(4 * time.Hour)
		f.Create("drip_feed", "late", `{"has_recommendations": true}`)
		f.Pass(7*time.Hour + 29*time.Minute)
		state := func(name machines.LabelName) machines.StateName { return f.Show("drip_feed", name).State }
		assert.Equal(t, machines.StateName("waiting"), state("early"))
		f.Pass(time.Minute) // 17:30 UTC
		assert.Equal(t, machines.StateName("waiting"), state("early"), "12 hours are not over")
		f.Pass(time.Hour)
		assert.Equal(t, machines.StateName("end"), state("early"))
		assert.Equal(t, []string{"GET /user/early", "GET /drip_feed"}, requests(s))
		f.Pass(23 * time.Hour) // 17:30 UTC, and the label is there since 10:00
		assert.Equal(t, machines.StateName("end"), state("late"))
		assert.Equal(t, machines.StateName("waiting"), state("none"))
	})
}
