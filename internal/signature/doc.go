// Package signature signs deliveries as Standard Webhooks 1.0 says, and keeps the rules of a
// subscriber's signing secrets. It does no I/O.
//
// A [Secret] can sign. A [Stored] secret is its form in Redis, sealed if the operator has
// configured a key, and a [List] is all of a subscriber's. A [Signer] signs one delivery while its
// body is written to it:
//
//	secrets, err := list.Open(keyring)
//	signer := signature.NewSigner(secrets, id, now)
//	for … { signer.Write(chunk) }
//	signer.SetHeader(header)
//
// The signed message is id.timestamp.body. An HMAC takes it piece by piece. Ed25519 takes it twice,
// and the standard's v1a is the plain form, without a digest before it. So the body is kept in
// memory if, and only if, a secret is for Ed25519.
package signature
