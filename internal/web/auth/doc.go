// Package auth finds out which client sent a request: HTTP Basic and Digest authentication with the
// tokens in Redis, or with the operator's root key.
//
// Tokens are held in memory ([Authenticator] keeps a token cache), so that a request costs no round
// trip to Redis. A token that was added works at once on every process: credentials that are not in
// the cache are looked up. A token that was removed stops working everywhere within a second.
package auth
