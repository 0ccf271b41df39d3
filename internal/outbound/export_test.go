package outbound

// Explained is explained, for the tests.
var Explained = explained
