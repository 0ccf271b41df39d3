// Package top is a live screen of a bus: its topics and subscribers with their rates, its jobs
// and state machines, what its clients keep, and the memory of its Redis.
//
//	GET /overview --Reader--> overview.Figures --> tables --> screen
//
// The bus computes the figures and its problems. This package shows them: [Once] prints them, and
// [Watch] updates a screen on the terminal.
package top
