/**
 * A model endpoint for load, in a process of its own: it says what the last prompt asks for, any number of streams on one clock. Prints its port.
 * "say COUNT EVERY": so many tokens, one every so many milliseconds. "pour COUNT": so many, as fast as they are taken. "call COUNT NAME JSON": the tool that often, one call a reply, then "done". "clock": when the request was there and when the answer was written, in milliseconds of the machine's own clock. Anything else: "ok". "hang": nothing, for ever.
 */
import { createServer } from 'node:http'

const TICK_MS = 10
const streams = new Set()
setInterval(() => {
  const now = performance.now()
  for (const stream of streams) if (now >= stream.due) stream.next(now)
}, TICK_MS)

const chunk = (delta, finish = null) => `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'load', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const USAGE = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'load', choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } })}\n\ndata: [DONE]\n\n`

/** Processes of one machine read the same clock. */
const clock = () => Number(process.hrtime.bigint()) / 1e6
const server = createServer((request, response) => {
  let text = ''
  request.setEncoding('utf8').on('data', piece => { text += piece }).on('end', () => {
    const arrived = clock()
    answer(JSON.parse(text || '{}').messages ?? [], response, arrived)
  })
})
function answer(messages, response, arrived) {
  const from = messages.findLastIndex(({ role }) => role === 'user'), { content = '' } = messages[from] ?? {}
  const prompt = typeof content === 'string' ? content : content.map(part => part.text ?? '').join('')
  const [verb, count, third, ...rest] = prompt.trim().split(' ')
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (verb === 'hang') { response.flushHeaders(); return }
  response.write(chunk({ role: 'assistant', content: '' }))
  const end = finish => { response.end(chunk({}, finish) + USAGE) }
  if (verb === 'call' && messages.slice(from).filter(({ role }) => role === 'tool').length < Number(count)) {
    response.write(chunk({ tool_calls: [{ index: 0, id: `call_${messages.length}`, type: 'function', function: { name: third, arguments: rest.join(' ') } }] }))
    end('tool_calls')
  } else if (verb === 'say') {
    let sent = 0
    const every = Number(third), stream = { due: performance.now() + every, next(now) {
      if (response.destroyed) { streams.delete(stream); return }
      response.write(chunk({ content: `t${++sent} ` }))
      stream.due = Math.max(stream.due + every, now)
      if (sent < Number(count)) return
      streams.delete(stream)
      end('stop')
    } }
    streams.add(stream)
  } else if (verb === 'pour') {
    let sent = 0
    const pour = () => {
      while (sent < Number(count)) if (!response.write(chunk({ content: `t${++sent} ` }))) { response.once('drain', pour); return }
      end('stop')
    }
    pour()
  } else {
    response.write(chunk({ content: verb === 'call' ? 'done' : verb === 'clock' ? `${arrived} ${clock()}` : 'ok' }))
    end('stop')
  }
}
server.listen(0, '127.0.0.1', 4096, () => { console.log(server.address().port) })
