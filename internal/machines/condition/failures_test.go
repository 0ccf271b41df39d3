package condition_test

// failures are conditions that cannot be evaluated, and why.
var failures = map[string]string{
	`metadata.five < null`:  "line 1, column 1: there is no order between a number and null: metadata.five < null",
	`metadata.missing >= 5`: `line 1, column 1: metadata.missing is null, which >= cannot compare; write "metadata.missing is defined and" before it: metadata.missing >= 5`,
	`metadata.missing < 5`:  `line 1, column 1: metadata.missing is null, which < cannot compare; write "metadata.missing is defined and" before it: metadata.missing < 5`,
	`5 < (metadata.nothing)`: `line 1, column 1: metadata.nothing is null, which < cannot compare; ` +
		`write "metadata.nothing is defined and" before it: 5 < (metadata.nothing)`,
	`null < null`:                   "line 1, column 1: there is no order between null and null: null < null",
	`"5" < 6`:                       `line 1, column 1: there is no order between a string and a number: "5" < 6`,
	`true < "true"`:                 `line 1, column 1: there is no order between a boolean and a string: true < "true"`,
	`metadata.list < metadata.list`: "line 1, column 1: there is no order between a list and a list: metadata.list < metadata.list",
	`metadata.blank > 1`:            "line 1, column 1: there is no order between an object and a number: metadata.blank > 1",
	`system.time >= 18h30m`:         "line 1, column 1: there is no order between a clock time and a number: system.time >= 18h30m",
	`system.time >= "18:30"`:        `line 1, column 1: there is no order between a clock time and a string: system.time >= "18:30"`,
	`"18:30" <= system.time`:        `line 1, column 1: there is no order between a string and a clock time: "18:30" <= system.time`,
	`system.now > 18:30`:            "line 1, column 1: there is no order between a timestamp and a clock time: system.now > 18:30",
	`system.now > metadata.started`: "line 1, column 1: there is no order between a timestamp and a string: system.now > metadata.started",

	`5 is in metadata.missing`: "line 1, column 1: a number cannot be in null: 5 is in metadata.missing",
	`5 is not in 55`:           "line 1, column 1: a number cannot be in a number: 5 is not in 55",
	`5 is in "55"`:             `line 1, column 1: a number cannot be in a string: 5 is in "55"`,
	`5 is in metadata.object`:  "line 1, column 1: a number cannot be in an object: 5 is in metadata.object",
	`null is in "null"`:        `line 1, column 1: null cannot be in a string: null is in "null"`,
	`9:00 is in system.time`:   "line 1, column 1: a clock time cannot be in a clock time: 9:00 is in system.time",

	`12h has passed since 18:30`:             "line 1, column 22: a clock time is not a timestamp: 18:30",
	`12h has passed since metadata.missing`:  "line 1, column 22: null is not a timestamp: metadata.missing",
	`12h has passed since metadata.hour`:     "line 1, column 22: a number is not a timestamp: metadata.hour",
	`"12h" has passed since system.now`:      `line 1, column 1: a string is not a duration: "12h"`,
	`true has passed since system.now`:       "line 1, column 1: a boolean is not a duration: true",
	`metadata.missing has passed since null`: "line 1, column 1: null is not a duration: metadata.missing",
	`1d has passed since metadata.day`: `line 1, column 21: "2026-11-20" is not a timestamp in the format of RFC 3339, ` +
		`such as 2026-11-23T18:30:00Z: metadata.day`,
	`1d has passed since "2026-11-20T18:00:00"`: `line 1, column 21: "2026-11-20T18:00:00" is not a timestamp in the format of ` +
		`RFC 3339, such as 2026-11-23T18:30:00Z: "2026-11-20T18:00:00"`,

	`metadata.five.x`:            "line 1, column 1: metadata.five is a number, not an object: metadata.five.x",
	`metadata.text.x = 1`:        "line 1, column 1: metadata.text is a string, not an object: metadata.text.x",
	`metadata.list.0`:            "line 1, column 1: metadata.list is a list, not an object: metadata.list.0",
	`metadata.yes.x is defined`:  "line 1, column 1: metadata.yes is a boolean, not an object: metadata.yes.x",
	`1 = metadata.nothing.x`:     "line 1, column 5: metadata.nothing is null, not an object: metadata.nothing.x",
	`metadata.object.deep.er.on`: "line 1, column 1: metadata.object.deep.er is a string, not an object: metadata.object.deep.er.on",
	`feeds.prefs.limit.x`:        "line 1, column 1: feeds.prefs.limit is a number, not an object: feeds.prefs.limit.x",
	`not feeds.broken.x`:         "line 1, column 5: the feed broken failed (status 503): feeds.broken.x",
	`feeds.other`:                "line 1, column 1: the feed other was not asked: feeds.other",

	"true and\n  (false or\n\t\"ä\" = 1 or   metadata.five < # why\n \"x\")": "line 3, column 15: there is no order between " +
		`a number and a string: metadata.five < "x"`,
	"metadata.five < 1 or (metadata.five < null)": "line 1, column 23: there is no order between a number and null: metadata.five < null",
	"true and metadata.five < null":               "line 1, column 10: there is no order between a number and null: metadata.five < null",
	"false or not feeds.broken":                   "line 1, column 14: the feed broken failed (status 503): feeds.broken",
	"feeds.broken is in metadata.list":            "line 1, column 1: the feed broken failed (status 503): feeds.broken",
	"5 is not in feeds.broken.list":               "line 1, column 13: the feed broken failed (status 503): feeds.broken.list",
	"1d has passed since feeds.broken.at":         "line 1, column 21: the feed broken failed (status 503): feeds.broken.at",
	"feeds.broken or true":                        "line 1, column 1: the feed broken failed (status 503): feeds.broken",
}
