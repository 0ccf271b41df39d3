// Package numbers keeps numbers that are known at some times and not at others, in little memory.
package numbers
