// Package top is a live screen of a bus: its topics and subscribers with their rates, its jobs, and the memory of its Redis.
// It sees the bus from outside, over the HTTP API and the metrics.
//
//	Reader --Snapshot--> Sampler --Figures--> tables --> screen
//
// A [Reader] asks the bus how things are at one moment, with one request for each thing. A [Sampler] compares that with the
// snapshots before, since the bus tells counts and a screen shows rates. Both are free of the terminal; [Once] prints what
// they tell, and [Watch] shows it.
package top
