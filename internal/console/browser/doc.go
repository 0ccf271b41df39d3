// Package browser has tests of the console in a browser.
//
// They are one package, so that one browser serves all of them, each test with a tab and a bus of
// its own. They are not built for the race detector: most of the time the browser computes, which
// it does not see, the handlers have tests of their own, which it does, and the library that drives
// the browser takes long to build.
package browser
