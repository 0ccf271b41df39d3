// An example service: it prints each job, and reports that it is done.
import { timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { setTimeout } from 'node:timers/promises'

for (const variable of ['PORT', 'BUS', 'TOKEN', 'DOWNSTREAM_WORKER_AUTH']) {
  if (!process.env[variable]) {
    console.error(`${variable} is not set`)
    process.exit(1)
  }
}
const { PORT, BUS, TOKEN, DOWNSTREAM_WORKER_AUTH } = process.env
const basic = (user, password) => 'Basic ' + Buffer.from(`${user}:${password}`).toString('base64')
const credentials = Buffer.from(basic('jobs', DOWNSTREAM_WORKER_AUTH))

// The path of each job in hand, and the attempt as which it came last.
const attempts = new Map()

// Does a job. Doing it twice must be harmless: if this process ends before it has reported, the job
// comes again.
async function work(name, data) {
  console.log(name, JSON.stringify(data))
}

function authorized(request) {
  const given = Buffer.from(request.headers.authorization ?? '')
  return given.length === credentials.length && timingSafeEqual(given, credentials)
}

async function take(request, response) {
  if (!authorized(request)) return response.writeHead(401).end()
  try {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const { data, attempt } = JSON.parse(Buffer.concat(chunks))
    const inHand = attempts.has(request.url)
    attempts.set(request.url, attempt)
    response.writeHead(202).end()
    if (!inHand) perform(request.url, data) // else the answer was lost, or the deadline has passed
  } catch (error) {
    console.error(error)
    response.writeHead(400).end()
  }
}

// Does a job, and repeats the report until the bus has taken or refused it.
async function perform(path, data) {
  let status = 'succeeded'
  try {
    await work(path.split('/')[3], data)
  } catch (error) {
    console.error(path, error)
    status = 'failed'
  }
  for (let pause = 100; ; pause = Math.min(2 * pause, 60_000)) {
    const attempt = attempts.get(path)
    if (await report(path, { status, attempt }) && attempts.get(path) === attempt) {
      return attempts.delete(path) // it has not come again as another attempt
    }
    await setTimeout(pause)
  }
}

// Tells the bus how an attempt ended, and returns whether it has taken or refused that.
async function report(path, outcome) {
  try {
    const answer = await fetch(BUS + path, {
      method: 'POST',
      headers: { authorization: basic(TOKEN, ''), 'content-type': 'application/json' },
      body: JSON.stringify(outcome),
      signal: AbortSignal.timeout(10_000)
    })
    if (!answer.ok) console.error(path, await answer.text())
    return answer.status < 500 // a refusal: it does not wait for this attempt any more
  } catch (error) {
    console.error(path, error)
    return false
  }
}

createServer(take).listen(Number(PORT), '127.0.0.1')
