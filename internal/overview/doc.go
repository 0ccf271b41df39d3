// Package overview says how a bus is: in figures, in the states of its subscribers and topics, and
// in words, what is wrong. It is arithmetic over [Sample]s of the bus, and reads nothing itself.
//
//	Sample --Sampler--> Figures --verdict.Judge--> states, problems
//	Sample --History--> Track: what the figures have been
package overview
