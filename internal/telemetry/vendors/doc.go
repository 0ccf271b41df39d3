// Package vendors sends exceptions and measures of a process to services of others.
//
// A [Reporter] logs unexpected errors and panics, and reports them to Sentry, Honeybadger or New
// Relic, in the background. A [MetricService] takes measures of the bus: a Datadog agent, or the
// log.
package vendors
