// An example subscriber: it prints each event and acknowledges the batch.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'

// SECRET is what deliveries are signed with, if the subscriber has one: whsec_ and base64.
const { PORT, CERT, KEY, UUID, SECRET } = process.env
// What deliveries carry: the uuid of the subscription as the user name, and the password x.
const credentials = Buffer.from('Basic ' + Buffer.from(`${UUID}:x`).toString('base64'))

function equal(a, b) {
  return a.length === b.length && timingSafeEqual(a, b)
}

function authorized(request) {
  return equal(Buffer.from(request.headers.authorization ?? ''), credentials)
}

// Says whether a delivery is from now, and signed with the secret (Standard Webhooks).
function signed({ headers }, body) {
  const [id, at, signatures] = ['id', 'timestamp', 'signature'].map(
    (name) => headers[`webhook-${name}`] ?? '')
  if (!/^\d+$/.test(at) || Math.abs(Date.now() / 1000 - Number(at)) > 300) return false
  const mac = createHmac('sha256', Buffer.from(SECRET.replace(/^whsec_/, ''), 'base64'))
  const expected = Buffer.from('v1,' + mac.update(`${id}.${at}.`).update(body).digest('base64'))
  return signatures.split(' ').some((signature) => equal(Buffer.from(signature), expected))
}

async function receive(request, response) {
  if (!authorized(request)) return response.writeHead(401).end()
  try {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    if (SECRET && !signed(request, body)) return response.writeHead(401).end()
    for (const event of JSON.parse(body)) {
      console.log(event.topic, event.type, event.url)
    }
    response.writeHead(204).end()
  } catch (error) {
    console.error(error)
    response.writeHead(500).end() // the batch is delivered again
  }
}

createServer({ cert: readFileSync(CERT), key: readFileSync(KEY) }, receive)
  .listen(Number(PORT), '127.0.0.1')
