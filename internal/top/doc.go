// Package top is a live screen of a bus: its topics and subscribers with their rates, its jobs
// and state machines, and the memory of its Redis.
//
//	stats.Reader --Snapshot--> stats.Sampler --Figures--> tables --> screen
//
// Package stats reads the bus and computes the figures. This package shows them: [Once] prints
// them, and [Watch] updates a screen on the terminal.
package top
