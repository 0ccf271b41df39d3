package condition_test

// whatIsTrue has an expression a line.
const whatIsTrue = `
true
not false
not null
not 0
5
-5
0.5
1e-400
"x"
" "
0:00
18:30
1s
metadata
metadata.yes
metadata.text
metadata.list
metadata.object
metadata.half
system.now
system.time
history.entered_state
history.previous_state
feeds.prefs
feeds.prefs.nested.on
true # a comment
3 < 6
not 4 >= 6
not 3 = 4
not not not false
null is not defined
5 is not in metadata.list
(3 < 6) and (7 > 5)
3<6 and 7>5
true and true and true
false or false or true
(false or true) and true
true or (false and false)
not (true and false)
not false and true
not true or true
metadata.five=5
metadata.five =5
metadata.five= 5
metadata.five=+5
5 = 5.0
5 = 5e0
50e-1 = 0.5E+1
007 = 7
0.1 = 0.10
-0 = 0
-0.0 = 0e5
1e400 = 10e399
1e-5 = 0.00001
1e99999999999999999999 > 1e400
-1e99999999999999999999 < -1e400
1e-99999999999999999999 > 0
9007199254740993 > 9007199254740992
9007199254740993 /= 9007199254740992
0.30000000000000004 > 0.3
metadata.huge = metadata.huge_also
metadata.huge < metadata.huger
metadata.huge /= metadata.huger
metadata.tiny > 0
metadata.tiny < 1e-399
metadata.vast = 1e400
-5 < -4
-5 < 0
-5 < 5
5 > -5
5 >= 5
5 <= 5
-0.5 > -0.51
10 > 9
100 > 99.5
0.09 < 0.1
true = 1
false = 0
true = 1.0
1 = true
true /= 2
true > false
true < 2
false >= 0
metadata.yes = true
metadata.yes = 1
metadata.no = false
metadata.no = 0
metadata.zero = false
metadata.one = true
null = null
null /= 0
null /= false
null /= ""
metadata.nothing = null
metadata.missing = null
metadata.missing = metadata.nothing
metadata.missing.further.on = null
metadata.blank.a.b is not defined
metadata.five /= "5"
metadata.digits /= 5
metadata.digits = "5"
metadata.text = "gold"
metadata.text /= "Gold"
"gold" = metadata.text
metadata.umlaut = "\u00e4"
metadata.umlaut = "ä"
metadata.pair = "\ud83d\ude00"
metadata.line = "a\nb"
"a\"b" /= "a\\b"
"(" = "("
"# no comment" = "# no comment"
"a" < "b"
"a" < "aa"
"Z" < "a"
"z" < "ä"
"" < "a"
"10" < "9"
metadata.text >= "gold"
metadata.list = metadata.list
metadata.object = metadata.object
metadata.list /= metadata.none
metadata.none /= metadata.blank
metadata.none = metadata.none
metadata.größe = 180
metadata.with-hyphen
metadata.in
metadata.2nd = 2
metadata.object.deep.er = "x"
(metadata.five) = (5)
(1 = 1) = true
(1 = 2) = (3 = 4)
not 1 = 2
not 1 > 2
not (1 = 2) = true
not true = false
5 is defined
false is defined
0 is defined
"" is defined
metadata.yes is defined
metadata.yes has defined
metadata.no was defined
metadata.none is defined
metadata.missing is not defined
metadata.nothing is not defined
metadata.missing has not defined
not metadata.missing is defined
not metadata.yes is not defined
metadata.object.k is defined
metadata.object.gold is not defined
feeds.prefs.absent is not defined
feeds.prefs.absent.further is not defined
2 is in metadata.list
2.0 is in metadata.list
4 was in metadata.list
"a" is in metadata.list
null is in metadata.list
metadata.missing is in metadata.list
3 is not in metadata.list
"2" is not in metadata.list
true is not in metadata.list
2 is not in metadata.none
not 3 is in metadata.list
"k" is in metadata.object
"gold" is in metadata.object
metadata.text is in metadata.object
"er" is not in metadata.object
"deep.er" is not in metadata.object
"ol" is in "gold"
"" is in "gold"
"" is in ""
"gold" is in metadata.text
"silver" is not in metadata.text
"k" is in metadata.object and "x" is not in metadata.object
metadata.text is in "gold silver"
12h = 43200
1d2h3m4s = 93784
1d = 24h
1d12h = 36h
90m = 1h30m
0s = 0
01h = 60m
106751d > 0
12h > 11h59m59s
metadata.hour = 1h
metadata.hour >= 60m
5h has passed since history.entered_state
5h has passed since system.entered_state
4h59m has passed since system.entered_state
0s has passed since system.now
0 has passed since system.now
-1 has passed since system.now
5h1s has not passed since system.entered_state
6h has not passed since system.entered_state
6h is not passed since system.entered_state
5h was passed since system.entered_state
not 6h has passed since system.entered_state
0.5 has passed since system.entered_state
18000 has passed since system.entered_state
18000.0001 has not passed since system.entered_state
1e400 has not passed since system.entered_state
metadata.hour has passed since system.entered_state
2d has passed since metadata.started
3d has not passed since metadata.started
2d has passed since metadata.started_in_rome
1d has passed since "2026-11-22T14:05:09+01:00"
1d has not passed since "2026-11-22T14:05:10+01:00"
1d has not passed since "2126-11-22T14:05:10Z"
99999d has passed since "0001-01-01T00:00:00Z"
system.time = 14:05:09
system.time > 14:05
system.time >= 14:05:09
system.time <= 14:05:09
system.time < 14:06
system.time >= 9:00
system.time >= 09:00 and system.time < 17:00
system.time /= "14:05:09"
14:05 = 14:05:00
9:05 = 09:05
18:30 > 9:00
18:30 /= "18:30"
18:30 /= 66600
metadata.time /= 18:30
system.now > system.entered_state
system.now >= system.now
system.entered_state = history.entered_state
system.entered_state < system.now
system.now /= "2026-11-23T14:05:09+01:00"
system.now /= system.time
history.previous_state = "welcome"
history.previous_state /= "start"
history.previous_state is defined
history.previous_state is in "welcome back"
feeds.prefs.frequency = "daily"
feeds.prefs.limit < metadata.five
feeds.prefs.limit is in metadata.list or feeds.prefs.limit = 3
true or metadata.five < null
true or feeds.broken
not (false and feeds.broken.x)
(true or feeds.broken) and true
`

// whatIsFalse likewise.
const whatIsFalse = `
false
null
0
0.0
-0
0e7
0s
""
not true
not 5
not "x"
metadata.no
metadata.nothing
metadata.zero
metadata.empty
metadata.none
metadata.blank
metadata.missing
metadata.missing.too
false # true
6 < 3
3 < 3
3 > 3
4 >= 6
6 <= 4
3 = 4
4 /= 4
5 /= 5.0
1 = 1.0000000000000000000000000001
metadata.huge = metadata.huger
metadata.huge > metadata.huger
9007199254740993 = 9007199254740992
1e400 = 1e401
-1e400 > 1e400
-1 = 1
-4 < -5
true = "true"
true = 2
true /= 1
false /= 0
null = false
null = 0
null = ""
5 = "5"
"5" = 5
"a" = "A"
"b" < "a"
"a" > "a"
"ä" < "z"
metadata.list = metadata.object
metadata.list /= metadata.list
metadata.none = metadata.blank
metadata.text = metadata.missing
metadata.missing is defined
metadata.nothing is defined
metadata.missing.on is defined
null is defined
5 is not defined
metadata.yes is not defined
not metadata.yes is defined
5 is in metadata.list
2 is not in metadata.list
"4" is in metadata.list
false is in metadata.list
1 is in metadata.list
"er" is in metadata.object
"K" is in metadata.object
"x" is in "gold"
"gold" is in "gol"
"a" is in ""
null is in metadata.none
6h has passed since system.entered_state
5h has not passed since system.entered_state
1s has passed since system.now
3d has passed since metadata.started
1e400 has passed since system.entered_state
5h0m1s has passed since history.entered_state
1d has passed since "2026-11-22T14:05:10+01:00"
system.time >= 18:30
system.time < 14:05:09
system.time = 14:05
system.time > 14:05:09
system.time = "14:05:09"
18:30 = 66600
metadata.time = 18:30
system.now < system.entered_state
system.now = system.time
system.now = "2026-11-23T13:05:09Z"
history.entered_state = null
history.previous_state = null
true and false
true and true and false
false or false
false and metadata.five < null
false and feeds.broken
not (true or feeds.broken)
(true or false) and false
(true and false) or false
not true and not true
not (1 = 1) = true
(1 = 1) = (1 = 2)
metadata.five=4
metadata.five<5
`
