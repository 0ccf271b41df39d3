// Package condition is the language of the exit conditions of state machines: it parses a
// condition, evaluates it for a label, and explains its value part by part. It does no I/O. For
// example, this gate opens after half a day, in the evening:
//
//	metadata.has_recommendations and
//	12h has passed since system.entered_state and
//	system.time >= 18:30
//
// # Grammar
//
//	condition  = test { "and" test } | test { "or" test }
//	test       = { "not" } value [ comparison | phrase ]
//	comparison = ( "=" | "/=" | "<" | ">" | "<=" | ">=" ) value
//	phrase     = verb [ "not" ] ( "defined" | "in" value | "passed" "since" value )
//	verb       = "is" | "has" | "was"
//	value      = "(" condition ")" | path | number | duration | clock time | string
//	           | "true" | "false" | "null"
//
// "and" and "or" side by side need parentheses, which say what belongs together: without them a
// condition is refused. "not" negates the whole test behind it, with its comparison or phrase; two
// cancel out. The verbs mean the same. Comparisons and phrases do not chain.
//
// The keywords are and, or, not, is, has, was, since, in, true, false and null, in lower case.
// Spaces and line breaks are needed only where two words would become one: n=4 needs none, and n-4
// is a name. A # begins a comment, up to the end of the line. A condition is UTF-8, has at most
// 16 KiB, and nests parentheses at most 100 deep.
//
// # Values
//
//	number      5  -5  0.25  1e6     exact, whatever its size: 0.1 = 0.10
//	duration    1d2h3m4s  90m        a number of seconds; units in this order, each optional
//	clock time  18:30  18:30:15      a time of day, from 0:00 to 23:59:59
//	string      "gold"               with the escapes of JSON, on one line
//
// Further kinds come from paths: lists, objects and timestamps. There is no arithmetic.
//
// # Paths
//
//	metadata, metadata.a.b    the label's metadata
//	feeds.NAME, feeds.NAME.a  what a feed answered; it is asked when it is first needed
//	history.entered_state     when the label entered its state, a timestamp
//	history.previous_state    the state before that, a string, or null in the first state
//	system.entered_state      the same as history.entered_state
//	system.now                the time of the evaluation, a timestamp
//	system.time               its time of day in whole seconds, a clock time, in the zone of the
//	                          trigger or the gate
//
// The names in a path have letters, digits, _ and -. A key that an object does not have is null,
// and so is what follows it. The value before a dot must be an object if it is there: a step into a
// number, a string, a boolean, a list or an explicit null fails.
//
// # Truth
//
// The condition holds, and a test counts as true, unless its value is false, null, 0, "", an empty
// list or an empty object. "and", "or", "not", comparisons and phrases give true or false. "and"
// stops at the first operand that is false, and "or" at the first that is true: what follows is not
// evaluated, and cannot fail.
//
// # Comparisons
//
// "=" compares anything and never fails. Numbers are compared by value, timestamps by instant, and
// lists and objects element by element. true equals 1 and false equals 0; otherwise values of
// different kinds are never equal. So a timestamp never equals a string, nor does a clock time.
//
// "<" and ">" order two numbers, strings (by code point), clock times or timestamps; true and false
// count as 1 and 0. Anything else has no order, and the evaluation fails. "/=", "<=" and ">=" are
// the exact opposites of "=", ">" and "<".
//
// # Phrases
//
//	X is defined             X is not null
//	X is in Y                Y is a list with an element that equals X; or X and Y are strings, and X
//	                         is a part of Y; or X is a string, and a key of the object Y
//	D has passed since T     at least D seconds lie between T and system.now; T is a timestamp, or a
//	                         string in the format of RFC 3339, such as "2026-11-23T18:30:00Z"
//
// They fail for values of other kinds. "is not defined", "is not in" and "has not passed since" are
// the opposites.
//
// # Failures
//
// A condition that cannot be evaluated, because values do not fit or a feed has failed, is neither
// true nor false: its evaluation fails with an [EvaluationError], which says where. If all that is
// missing is a feed that was not asked, the error is [ErrUnknown].
package condition
