// Package app puts the parts together: it reads the environment, wires the daemons, and runs them.
package app
