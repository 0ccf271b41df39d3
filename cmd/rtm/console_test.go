package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
)

// fakeBrowser is the program that starts browsers: it notes its argument, and may fail.
func fakeBrowser(t *testing.T, fail bool) (opened func() string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("browsers are started by other programs here")
	}
	folder := t.TempDir()
	given, status := filepath.Join(folder, "given"), 0
	if fail {
		status = 3
	}
	script := fmt.Sprintf("#!/bin/sh\nprintf %%s \"$*\" > '%s'\nexit %d\n", given, status)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "xdg-open"), []byte(script), 0o700))
	t.Setenv("PATH", folder)
	return func() string {
		text, _ := os.ReadFile(given)
		return string(text)
	}
}

func TestTheConsoleIsOpened(t *testing.T) {
	const login = "POST /console_logins"
	b := newCannedBus(t, map[string]string{login: `{"url":"console/login#code=abc"}`})
	link := b.url + "/console/login#code=abc"

	opened := fakeBrowser(t, false)
	status, out, errors := b.rtm(t, "console", "--name", "Ada", "--look-only")
	require.Equal(t, app.ExitOK, status, errors)
	assert.Equal(t, link, opened())
	assert.Empty(t, out)
	assert.Equal(t, "Opening "+b.url+"/console/login in a browser.\n", errors, "the code stays off the screen")
	assert.Equal(t, []string{login + ` {"person":"Ada","look_only":true}`}, b.requests)

	opened = fakeBrowser(t, false)
	_, out, errors = b.rtm(t, "console", "--print")
	assert.Equal(t, link+"\n", out)
	assert.Empty(t, errors+opened())

	fakeBrowser(t, true)
	status, out, errors = b.rtm(t, "console")
	assert.Equal(t, app.ExitOK, status)
	assert.Equal(t, link+"\n", out)
	assert.Contains(t, errors, "No browser could be started: exit status 3.")

	opened = fakeBrowser(t, false)
	b.answer(login, `{"url":"https://console.example:8081/console/login#code=abc"}`)
	_, _, _ = b.rtm(t, "console")
	assert.Equal(t, "https://console.example:8081/console/login#code=abc", opened(), "a console with an address of its own")
}

func TestOnlyLinksToAConsoleAreOpened(t *testing.T) {
	opened := fakeBrowser(t, false)
	for _, url := range []string{"file:///etc/passwd#code=a", "javascript:alert(1)#code=a", "console/login", "", "https:///x#code=a", "\\u0001:"} {
		b := newCannedBus(t, map[string]string{"POST /console_logins": `{"url":"` + url + `"}`})
		status, out, errors := b.rtm(t, "console")
		assert.Equal(t, app.ExitFailed, status, url)
		assert.Contains(t, errors, "the bus gave no link to its console", url)
		assert.Empty(t, out+opened(), url)
	}
}
