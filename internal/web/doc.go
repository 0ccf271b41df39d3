// Package web serves the HTTP API: who asks, what is asked, and whether it may be.
package web
