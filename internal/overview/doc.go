// Package overview describes the state of a bus: its figures, the states of its subscribers and
// topics, and its problems in words. It is arithmetic over [Sample]s of the bus, and reads nothing
// itself.
//
//	Sample --Sampler--> Figures --verdict.Judge--> states, problems
//	Sample --History--> Track: past values of the figures
package overview
