// An example subscriber: it prints each event and acknowledges the batch.
import { timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'

const { PORT, CERT, KEY, UUID } = process.env
// What deliveries carry: the uuid of the subscription as the user name, and the password x.
const credentials = Buffer.from('Basic ' + Buffer.from(`${UUID}:x`).toString('base64'))

function authorized(request) {
  const given = Buffer.from(request.headers.authorization ?? '')
  return given.length === credentials.length && timingSafeEqual(given, credentials)
}

async function receive(request, response) {
  if (!authorized(request)) return response.writeHead(401).end()
  try {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    for (const event of JSON.parse(Buffer.concat(chunks))) {
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
